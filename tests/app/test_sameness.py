"""Which parameters count as equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.sameness import FINGERPRINT_BYTES, fingerprint, same


def equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return fingerprint(a) == fingerprint(b) and same([a], [b])


# Those that their ends tell, two copies, and pieces.
@pytest.mark.parametrize("size", [3, 4_000, 600_000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_bytes_are_compared_and_not_numbers(size: int, dtype: str) -> None:
    array = (np.arange(size) % 1000).astype(dtype)
    array[size // 2] = np.nan
    assert equal(array, array.copy())
    zero = array.copy()
    zero[size // 2] = 0.0
    assert not equal(zero, array)
    negative = zero.copy()
    negative[size // 2] = -0.0
    assert not equal(zero, negative)


def test_a_fingerprint_is_not_enough() -> None:
    array = np.zeros(4_000, np.float32)
    other = array.copy()
    other[2_000] = 1
    assert fingerprint(array) == fingerprint(other)
    assert not same([array, array], [array, other])


@pytest.mark.parametrize("nbytes", [2 * FINGERPRINT_BYTES + 1, 4 * FINGERPRINT_BYTES])
def test_what_lies_between_the_ends_counts_from_its_first_byte_on(nbytes: int) -> None:
    array = np.zeros(nbytes, np.uint8)
    other = array.copy()
    other[nbytes // 2] = 1
    assert fingerprint(array) == fingerprint(other)
    assert not equal(array, other)


def test_type_and_shape_count() -> None:
    array = np.zeros(8, np.float32)
    assert not equal(array, array.reshape(2, 4))
    assert not equal(array, array.view(np.int32))


def test_an_empty_parameter_is_equal_to_itself() -> None:
    assert equal(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
