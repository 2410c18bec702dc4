"""NaN of any sign and payload becomes the one NaN; nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels import nan


@pytest.mark.parametrize("size", [1, 1000, nan.BLOCK, nan.BLOCK + 1, 3 * nan.BLOCK + 7])
@pytest.mark.parametrize(("float_", "int_"), [("f2", "u2"), ("f4", "u4"), ("f8", "u8")])
def test_every_nan_gets_the_same_bits(size: int, float_: str, int_: str) -> None:
    numbers = np.random.default_rng(0).standard_normal((1, size)).astype(float_)
    numbers[0, size // 2 :: 97] = np.inf
    before = numbers.copy()
    places = np.unique([0, size // 3, size - 1])
    bits = numbers.view(int_)
    bits[0, places] = np.array(np.nan, float_).view(int_) | 1 | 1 << (8 * numbers.itemsize - 1)
    nan.settle_nan(numbers)
    assert set(bits[0, places].tolist()) == {int(np.array(np.nan, float_).view(int_))}
    others = np.setdiff1d(np.arange(size), places)
    assert numbers[0, others].tobytes() == before[0, others].tobytes()


def test_integers_and_nothing_are_left_alone() -> None:
    for array in (np.arange(5), np.zeros((0, 3), "f4")):
        before = array.tobytes()
        nan.settle_nan(array)
        assert array.tobytes() == before


@pytest.mark.parametrize("bad", [np.nan, -np.nan])
def test_one_nan_is_seen_wherever_it_stands_and_infinities_are_not(bad: float) -> None:
    numbers = np.full((3, 5, 8), np.inf, np.float32)[:, :, ::2]
    numbers[1] = -np.inf
    assert not nan.has_nan(numbers)
    for place in np.ndindex(numbers.shape):
        spoilt = numbers.copy()
        spoilt[place] = bad
        assert nan.has_nan(spoilt)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_trusted_only_where_none_can_be_nan(dtype: str) -> None:
    kind, most = np.dtype(dtype), float(np.finfo(dtype).max)
    assert not nan.may_be_nan(0.0, 0.0, kind)
    assert not nan.may_be_nan(1e10, 1e10, kind)
    assert not nan.may_be_nan(most / 5, most / 5, kind)
    assert nan.may_be_nan(most / 3, most / 3, kind)
    for bad in (np.inf, np.nan):
        assert nan.may_be_nan(bad, 0.0, kind)
        assert nan.may_be_nan(0.0, bad, kind)


def test_squares() -> None:
    numbers = np.arange(24, dtype="f4").reshape(2, 3, 4)
    assert nan.squares(numbers) == 23 * 24 * 47 / 6
    assert nan.squares(numbers[:, :, ::2]) == float((numbers[:, :, ::2] ** 2).sum())
    assert nan.squares(np.empty((0, 3), "f4")) == 0
    for bad in (np.nan, np.inf, -np.inf, 1e30):
        spoilt = numbers.copy()
        spoilt[1, 1, 1] = bad
        with np.errstate(over="ignore"):
            assert not nan.squares(spoilt) < np.inf
