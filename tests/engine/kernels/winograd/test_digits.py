"""Which products are of few digits, of those that count by their size."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.winograd.digits import (
    TOGETHER,
    Taps,
    short_channels,
    short_correlation,
    short_sums,
)

Shape = tuple[int, ...]


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def steps(seed: int, size: float, *shape: int) -> np.ndarray:
    """Whole numbers of three digits times a size."""
    whole = np.random.default_rng(seed).integers(-7, 8, shape)
    return (whole * size).astype(np.float32)


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)


def means(a: np.ndarray) -> np.ndarray:
    return np.abs(a).reshape(*a.shape[:2], -1).mean(2, dtype=np.float64)


def sums(x: np.ndarray, w: np.ndarray) -> list[bool]:
    """What is found of samples and of filters as they lie and otherwise."""
    found = []
    for a in (x, last(x)[:, :, ::-1]):
        for b in (w, w[..., ::-1], np.ascontiguousarray(w.swapaxes(0, 1)).swapaxes(0, 1)):
            taps = Taps.of(b, np.abs(b).reshape(len(b), -1).mean(1, dtype=np.float64))
            found.append(short_sums(a, means(a), taps).tolist())
    assert found == found[:1] * len(found)
    return found[0]


def correlation(x: np.ndarray, dy: np.ndarray) -> bool:
    found = {
        short_correlation(a, b, means(a), means(b)) for a in (x, last(x)) for b in (dy, last(dy))
    }
    assert len(found) == 1
    return found.pop()


FILTERS = 32, 40, 1, 9
MAPS = 2, 40, 20, 30


@pytest.mark.parametrize(
    ("x", "w", "short"),
    [
        (numbers(0, *MAPS), numbers(1, *FILTERS), False),
        (np.maximum(numbers(0, *MAPS), 0), numbers(1, *FILTERS), False),
        (numbers(0, *MAPS), steps(1, 1, *FILTERS), False),
        (numbers(0, *MAPS), np.ones(FILTERS, np.float32), False),
        (steps(0, 0.1, *MAPS), numbers(1, *FILTERS), False),
        (steps(0, 0.1, *MAPS), steps(1, 0.1, *FILTERS), False),
        (steps(0, 0.1, *MAPS), steps(1, 1, *FILTERS), False),
        (steps(0, 1, *MAPS), steps(1, 0.25, *FILTERS), True),
        (steps(0, 0.1, *MAPS), steps(1, 10, *FILTERS), True),
        (steps(0, 1e3, *MAPS), steps(1, 0.01, *FILTERS), True),
        (steps(0, 1 / 255, *MAPS), steps(1, 255, *FILTERS), True),
        (numbers(0, *MAPS).astype(np.float16).astype(np.float32), steps(1, 2, *FILTERS), True),
        (np.zeros(MAPS, np.float32), numbers(1, *FILTERS), True),
        (np.full(MAPS, -0.0, np.float32), steps(1, 1, *FILTERS), True),
    ],
    ids=[
        "random",
        "half of them 0",
        "under whole filters",
        "under ones",
        "tenths",
        "hundredths",
        "whole tenths",
        "whole",
        "tenths times tens",
        "thousands times hundredths",
        "shares of 255",
        "half precision",
        "zeros",
        "zeros below 0",
    ],
)
def test_short_products(x: np.ndarray, w: np.ndarray, short: bool) -> None:
    assert sums(x, w) == [short] * 2


def test_each_sample_is_told_by_itself() -> None:
    count = TOGETHER + 3
    x = numbers(0, count, 16, 9, 9)
    own = [0, TOGETHER - 1, TOGETHER, count - 1]
    x[own] = steps(1, 0.1, len(own), 16, 9, 9)
    found = sums(x, steps(2, 10, 8, 16, 1, 9))
    assert [n for n, short in enumerate(found) if short] == own


def test_volumes_and_few_channels() -> None:
    x, w = steps(0, 0.1, 1, 3, 20, 9, 7), steps(1, 10, 5, 3, 3, 9)
    assert sums(x, w) == [True]
    assert sums(numbers(0, *x.shape), w) == [False]


@pytest.mark.parametrize("share", [4, 16])
def test_channels_far_smaller_than_others_count_for_nothing(share: int) -> None:
    x, w = 1e-3 * numbers(0, 1, 64, 20, 30), steps(2, 10, 32, 64, 1, 9)
    x[:, 3::share] = steps(1, 0.1, 1, 64 // share, 20, 30)
    assert sums(x, w) == [True]
    x *= 1e3
    x[:, 3::share] = steps(1, 0.1, 1, 64 // share, 20, 30)
    assert sums(x, w) == [False], "where they are as large"


def test_numbers_far_smaller_than_others_count_for_nothing() -> None:
    x = 1e-3 * numbers(0, 1, 3, 20, 30)
    x[:, :, 5:15, :15] = steps(1, 0.1, 1, 3, 10, 15)
    assert sums(x, steps(2, 10, 8, 3, 1, 9)) == [True]


@pytest.mark.parametrize("axis", ["outputs", "channels", "taps"])
def test_filters_are_told_by_the_largest(axis: str) -> None:
    w = 1e-3 * numbers(0, 64, 32, 1, 9)
    some = {"outputs": w[7::16], "channels": w[:, 3::10], "taps": w[..., 3:6]}[axis]
    some[:] = steps(1, 10, *some.shape)
    assert sums(steps(2, 0.1, 1, 32, 9, 9), w) == [True]


def test_products_of_a_correlation() -> None:
    x, dy = steps(0, 0.1, 3, 40, 20, 30), steps(1, 10, 3, 5, 18, 28)
    assert correlation(x, dy)
    assert not correlation(numbers(0, *x.shape), dy)
    assert not correlation(x, numbers(0, *dy.shape))
    assert correlation(x[..., :7, :7], dy[..., :5, :5])
    x[1] = 1e-3 * numbers(2, *x.shape[1:])
    assert correlation(x, dy), "small samples count for nothing"
    x[1] *= 1e3
    assert not correlation(x[1:2], dy[1:2])


@pytest.mark.parametrize("last", [False, True])
def test_channels_of_few_digits(last: bool) -> None:
    a = np.random.default_rng(0).standard_normal((6, 9, 30)).astype(np.float32)
    a = np.ascontiguousarray(a.transpose(1, 2, 0)).transpose(2, 0, 1) if last else a
    a[2] = 0
    other = np.roll(a, 1, axis=0)

    def short(a: np.ndarray) -> bool:
        """Whether a is, beside another that is not."""
        found = short_channels(np.stack([other, a]))
        assert not found[0]
        return bool(found[1])

    assert not short(a)
    assert not short(np.maximum(a, 0))
    a[2, 0, 3] = -1.5
    assert short(a)
    a[2, 4, 0] = 1 + 2**-12
    assert not short(a)
    a[2, 4, 0] = 1 + 2**-11
    assert short(a)
