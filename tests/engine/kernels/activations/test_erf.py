"""The complementary error function against the standard library."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.kernels.activations.erf import erfc


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erfc_of_extremes(dtype: type[np.floating]) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -5, 5, -1, 1, -0.1, 0.1] * 3, dtype)
    whole = erfc(x)
    np.testing.assert_array_equal(whole[:5], [1, 1, 0, 2, np.nan])
    np.testing.assert_allclose(whole[5:11], [math.erfc(v) for v in x[5:11]], rtol=1e-6)
    np.testing.assert_array_equal(erfc(x.reshape(3, 11)), whole.reshape(3, 11))


def test_erfc_against_the_standard_library() -> None:
    x = np.linspace(-6, 26, 4001)
    np.testing.assert_allclose(erfc(x), [math.erfc(v) for v in x], rtol=1e-12, atol=1e-300)
