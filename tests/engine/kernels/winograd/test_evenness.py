"""The spread of numbers: by its definition, and at the ends of the range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.kernels.winograd import evenness
from engine.kernels.winograd.evenness import (
    Filters,
    Sizes,
    alternates,
    exceeds,
    step,
)

Draw = Callable[[np.ndarray], np.ndarray]


def filters_spread(w: np.ndarray, height: int) -> float:
    found = Filters.of(w)
    return found.spread * found.more(height)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0)


def sizes(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of one sample."""
    means, squares = evenness.sizes(a[None])
    return means[0], squares[0]


def together_of(a: np.ndarray) -> Sizes:
    return Sizes.together(*evenness.sizes(a[None]))[0]


@pytest.mark.parametrize(
    "shape", [(3, 20, 9), (64, 56, 56), (5, 7, 6, 30), (1, 1, 1), (8, 9, 5000)]
)
@pytest.mark.parametrize("laid", [np.ascontiguousarray, last])
def test_sizes(shape: tuple[int, ...], laid: object) -> None:
    a = numbers(*shape)
    looked_at = np.abs(a[..., :: step(a.shape[-2]), :].astype(np.float64)).reshape(len(a), -1)
    means, squares = sizes(laid(a) if callable(laid) else a)
    np.testing.assert_allclose(means, looked_at.mean(1), rtol=1e-5)
    np.testing.assert_allclose(squares, (looked_at**2).mean(1), rtol=1e-5)


@pytest.mark.parametrize("rows", [28, 32, 56, 112])
@pytest.mark.parametrize("period", [2, 3, 4])
def test_rows_that_are_zero_are_seen_among_others(period: int, rows: int) -> None:
    """Those that are looked at are not all of one kind, wherever the period begins."""
    a = numbers(64, rows, 20)
    for begin in range(period):
        sparse = np.zeros_like(a)
        sparse[:, begin::period] = a[:, begin::period]
        assert together_of(sparse).spread > 0.6 * period * together_of(a).spread


@pytest.mark.parametrize("scale", [2.0**-140, 2.0**-100, 2.0**100, 2.0**125])
@pytest.mark.parametrize("laid", [np.ascontiguousarray, last])
def test_sizes_far_from_one(scale: float, laid: object) -> None:
    """Squares leave the range of float32, and numbers below 1e-38 have few digits."""
    a = np.clip(numbers(4, 16, 30), -3, 3)
    b = laid(a * np.float32(scale)) if callable(laid) else a
    with np.errstate(over="ignore"):
        found, usual = Sizes.each(*sizes(b)), Sizes.each(*sizes(a))
    assert found.mean == pytest.approx(scale * usual.mean, rel=1e-2)
    assert found.spread == pytest.approx(usual.spread, rel=1e-2)


@pytest.mark.parametrize("laid", [np.ascontiguousarray, last])
@pytest.mark.parametrize("shape", [(3, 20, 9), (5, 56, 56), (8, 40, 900)])
def test_samples_are_looked_at_alone(shape: tuple[int, ...], laid: Draw) -> None:
    """Beside others, of any size, they have the same bits."""
    samples = [laid(numbers(*shape) * np.float32(s)) for s in (1, 1e-30, 0.5, 1e25, 0, np.nan, 3)]
    together = np.empty((len(samples), *shape), np.float32)
    if samples[0].strides[0] == 4:
        together = np.moveaxis(np.moveaxis(together, 1, -1).copy(), -1, 1)
    together[...] = samples
    with np.errstate(invalid="ignore"):
        means, squares = evenness.sizes(together)
        all_sizes = Sizes.together(means, squares)
        for n, a in enumerate(samples):
            np.testing.assert_array_equal([means[n], squares[n]], sizes(a))
            np.testing.assert_array_equal(all_sizes[n], together_of(a))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_not_even(bad: float) -> None:
    a = numbers(4, 16, 30)
    a[1, 0, 3] = bad
    with np.errstate(invalid="ignore"):
        for found in Sizes.each(*sizes(a)).spread, together_of(a).spread:
            assert not found < 1e6
        assert not filters_spread(a[..., :9].reshape(4, -1, 1, 9), 2) < 1e6


def test_zeros_are_not_even() -> None:
    a = np.zeros((4, 16, 30), np.float32)
    assert Sizes.each(*sizes(a)).spread == together_of(a).spread == np.inf
    assert filters_spread(a[..., :9].reshape(4, -1, 1, 9), 2) == np.inf


def test_spreads() -> None:
    a, rng = numbers(64, 64, 64), np.random.default_rng(1)
    assert Sizes.each(*sizes(np.ones_like(a))).spread == pytest.approx(1)
    assert Sizes.each(*sizes(a)).spread == pytest.approx(np.pi / 2, rel=0.05)
    tenth = a * (rng.random(a.shape) < 0.1)
    assert Sizes.each(*sizes(tenth)).spread == pytest.approx(5 * np.pi, rel=0.1)
    assert Sizes.each(*sizes(np.exp(3 * a))).spread > 100
    channels = np.arange(64)[:, None, None]
    growing = a * np.float32(1.05) ** channels
    assert Sizes.each(*sizes(growing)).spread < 3
    assert together_of(growing).spread < 3
    # One channel of all is nothing but few numbers to add.
    assert together_of(a * (channels == 5)).spread == pytest.approx(5 * np.pi, rel=0.15)


@pytest.mark.parametrize("spread", [2.0, 12.0, 100.0])
@pytest.mark.parametrize("count", [200, 10_000])
def test_the_largest_number_of_a_spread(spread: float, count: int) -> None:
    own = Sizes(0.8, 1.0)
    found = own.largest(spread, count)
    squares, total = count * own.square + found**2, count * own.mean + found
    assert count * squares / total**2 == pytest.approx(spread)
    assert own.largest(spread, int(spread)) == np.inf


def test_exceeds() -> None:
    a = numbers(3, 4, 5)
    a[1, 2, 3] = -7
    assert exceeds(a, 6.9)
    assert exceeds(-a, 6.9)
    assert not exceeds(a, 7)
    assert not exceeds(a, np.inf)


@pytest.mark.parametrize("height", [2, 4])
def test_spreads_of_filters(height: int) -> None:
    w = numbers(64, 64, 1, 9)
    one, other = (filters_spread(a, height) for a in (w, w * np.float32(1e-30)))
    assert one == pytest.approx(other, rel=1e-3)
    assert 1.4 < one < 2
    assert filters_spread(np.ones_like(w), height) > 1.8
    # A filter of few taps is what its plain sum is exact for, and the largest filter counts.
    w[7] = 0
    w[7, 3, 0, 4] = 1000
    assert filters_spread(w, height) > 100


def test_a_large_filter_among_those_that_are_not_looked_at() -> None:
    w = numbers(256, 256, 1, 9)
    assert filters_spread(w, 2) < 2
    w[5, 201, 0, 3] = -1e4
    assert filters_spread(w, 2) > 1000
    assert filters_spread(w.swapaxes(0, 1)[..., ::-1], 2) > 1000


def test_numbers_that_alternate() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((20, 3, 12, 30)).astype(np.float32)
    signs = np.float32(-1.0) ** np.arange(30, dtype=np.float32)
    # Channels that are looked at first may alternate where others do not.
    some = np.where(np.arange(20)[:, None, None, None] % 8, a, 1) * signs
    kinds: list[tuple[np.ndarray, bool]] = [
        (a, False),
        (np.abs(a), False),
        (signs + a / 10, True),
        (1e30 * signs * np.ones_like(a), True),
        (1e-40 * signs * np.ones_like(a), True),
        (signs + a / 2, False),
        (np.zeros_like(a), False),
        (some, False),
        (np.abs(some) * signs, True),
    ]
    samples = np.stack([kind.astype(np.float32) for kind, _ in kinds])
    assert alternates(samples).tolist() == [expected for _, expected in kinds]
    assert not alternates(samples[..., :1]).any()
    for sample, (_, expected) in zip(samples, kinds, strict=True):
        assert alternates(sample[None]).tolist() == [expected]
