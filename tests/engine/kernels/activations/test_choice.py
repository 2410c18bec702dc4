"""A choice by bits against `numpy.where`."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.activations.choice import chosen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_are_those_of_the_number_that_is_chosen(dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(0)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    # NaN of every kind among them.
    one, other = (
        rng.integers(0, np.iinfo(bits).max, 4000, bits, endpoint=True).view(dtype) for _ in "ab"
    )
    where = rng.random(4000) < 0.5
    for a, b in ((one, other), (one[:1], other), (one[:1], other[:1])):
        found = chosen(where, a, b)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.view(bits), np.where(where, a.view(bits), b.view(bits)))
