"""Scratch rows: from both ends, and shortened."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.activations.rows import Rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_share_no_memory(dtype: type[np.floating]) -> None:
    rows = Rows(3, 10, np.dtype(dtype))
    rows[0][:] = 5
    zero, one = rows.filled(0), rows.filled(1.0)
    np.testing.assert_array_equal(rows[0], np.full(10, 5, dtype))
    np.testing.assert_array_equal(zero, np.zeros(10, dtype))
    np.testing.assert_array_equal(one, np.ones(10, dtype))
    assert rows.filled(0) is zero
    assert rows.filled(1) is one


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shorter_rows_lie_where_the_longer_did(dtype: type[np.floating]) -> None:
    rows = Rows(2, 10, np.dtype(dtype))
    zero, first = rows.filled(0), rows[0]
    rows.shorten(3)
    assert len(rows[0]) == len(rows.filled(0)) == len(rows.mask) == 3
    assert np.shares_memory(rows[0], first)
    assert np.shares_memory(rows.filled(0), zero)
    assert rows[0].flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sign_is_that_bit_alone(dtype: type[np.floating]) -> None:
    rows = Rows(1, 1, np.dtype(dtype))
    zero = np.array([0], rows.bits) | rows.sign
    assert zero.dtype == rows.bits
    assert zero.view(dtype)[0] == 0
    assert np.signbit(zero.view(dtype)[0])
