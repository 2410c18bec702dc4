"""The digits that numbers need, by their definition, of those that count by their size."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.digits import digits, filter_digits, short_channels


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0)


def needed(a: np.ndarray) -> int:
    return digits(a, np.abs(a).reshape(len(a), -1).mean(1))


def test_digits() -> None:
    a = np.full((3, 4, 9), 3, np.float32)
    assert needed(a) == 2
    a[0] = -0.0
    assert needed(a) == 2, "zeros are none"
    a[1] = -5.25
    assert needed(a) == 5
    a[2] = 1 + 2.0**-23
    assert needed(a) == 24, "of half of the numbers"
    a[0] = -5.25
    a[1, 2:] = 5
    assert needed(a) == 24
    a[2, 1:] = 1
    assert needed(a) == 5, "most"
    assert needed(np.zeros((1, 2, 9), np.float32)) == 1
    assert needed(np.full((1, 1, 1), np.nan, np.float32)) <= 24
    assert needed(numbers(4, 4, 8).astype(np.float16).astype(np.float32)) in (10, 11)
    assert needed(last(numbers(40, 30, 8))[:, ::-1, ::-1]) == 24


@pytest.mark.parametrize("share", [4, 16])
def test_channels_far_smaller_than_others_count_for_nothing(share: int) -> None:
    a = 1e-3 * numbers(64, 20, 30)
    whole = np.random.default_rng(1).integers(-8, 8, (64 // share, 20, 30)) / 8
    a[3::share] = whole
    assert needed(a) <= 4
    a *= 1e3
    a[3::share] = whole
    assert needed(a) == 24, "where they are as large"


def test_numbers_far_smaller_than_others_count_for_nothing() -> None:
    a = 1e-3 * numbers(3, 20, 30)
    a[:, 5:15, :15] = np.random.default_rng(1).integers(-8, 8, (3, 10, 15))
    assert needed(a) <= 4


@pytest.mark.parametrize("axis", ["outputs", "channels", "taps"])
def test_filters_are_told_by_the_largest(axis: str) -> None:
    w = 1e-3 * numbers(64, 32, 1, 9)
    some = {"outputs": np.s_[7::16], "channels": np.s_[:, 3::10], "taps": np.s_[..., 3:6]}[axis]
    w[some] = np.random.default_rng(1).integers(-2, 3, w[some].shape)
    for b in (w, w[..., ::-1], w.swapaxes(0, 1)):
        assert filter_digits(b, np.abs(b).reshape(len(b), -1).mean(1)) <= 2


@pytest.mark.parametrize("last", [False, True])
def test_channels_of_few_digits(last: bool) -> None:
    a = np.random.default_rng(0).standard_normal((6, 9, 30)).astype(np.float32)
    a = np.ascontiguousarray(a.transpose(1, 2, 0)).transpose(2, 0, 1) if last else a
    a[2] = 0
    assert not short_channels(a)
    assert not short_channels(np.maximum(a, 0))
    a[2, 0, 3] = -1.5
    assert short_channels(a)
    a[2, 4, 0] = 1 + 2**-12
    assert not short_channels(a)
    a[2, 4, 0] = 1 + 2**-11
    assert short_channels(a)
