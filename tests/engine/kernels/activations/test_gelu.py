"""Exact GELU in float32 against the standard library's error function in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.kernels.activations.gelu import _mills
from engine.kernels.activations.table import Activation, activate, activate_backward

Array = NDArray[Any]

GELU = Activation("gelu", (("approximate", False),))
EDGES = (-14.4, -12, -8, -5, -3, -2, -1, -0.3, -1e-3, 0, 1e-3, 0.3, 1, 2, 5, 20)
"""Where the spans end in which errors are looked at."""

MOST = (150, 130, 60, 25, 13, 10, 5, 4, 3, 4, 4, 4, 3, 2, 2)
"""Units in the last place of the value in each span: to the left the exponential's argument is rounded."""

MOST_OF_SLOPE = (90, 90, 30, 16, 11, 12, None, 4, 3, 3, 3, 4, 3, 2, 2)
"""The same of the slope; in one span it goes through 0."""


def _value(z: Array) -> Array:
    y = np.empty_like(z)
    activate(GELU, z, y)
    return y


def _slope(z: Array) -> Array:
    dz = np.empty_like(z)
    activate_backward(GELU, z, np.ones_like(z), dz)
    return dz


def _exact(z: Array) -> tuple[Array, Array]:
    """Value and slope in float64."""
    wide = z.astype(np.float64)
    normal = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in wide])
    density = np.exp(-wide * wide / 2) / math.sqrt(2 * math.pi)
    return wide * normal, normal + wide * density


def _units(found: Array, exact: Array) -> Array:
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32))


@pytest.mark.parametrize("span", range(len(MOST)))
def test_errors_are_a_few_units_in_the_last_place(span: int) -> None:
    rng = np.random.default_rng(span)
    z = rng.uniform(EDGES[span], EDGES[span + 1], 20_000).astype(np.float32)
    value, slope = _exact(z)
    assert _units(_value(z), value).max() <= MOST[span]
    most = MOST_OF_SLOPE[span]
    if most is None:
        assert np.abs(_slope(z) - slope).max() <= 2.5 * 2.0**-24
    else:
        assert _units(_slope(z), slope).max() <= most


def test_the_ratio_is_as_exact_as_is_said() -> None:
    a = np.linspace(1e-3, 14.4, 5001)
    exact = np.array([0.5 * math.erfc(v / math.sqrt(2)) * math.exp(v * v / 2) for v in a])
    found = _mills(a, np.empty_like(a))
    assert (np.abs(found / exact - 1) / (1 + a * a)).max() <= 2.3e-8


def test_the_left_tail_keeps_its_digits_to_its_end() -> None:
    """Down to numbers below the normal ones, and to -0."""
    z = np.linspace(-15, -12.5, 10_001).astype(np.float32)
    value, slope = _exact(z)
    np.testing.assert_allclose(_value(z), value, rtol=4e-5, atol=1.2e-44)
    np.testing.assert_allclose(_slope(z), slope, rtol=4e-5, atol=2e-44)
    far = np.array([-15, -1e4, -1e13, -1e20, -3e38], np.float32)
    assert not _value(far).any()
    assert np.signbit(_value(far)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_numbers(dtype: type[np.floating]) -> None:
    z = np.array([0.0, -0.0, np.inf, np.nan, 1e-40, -1e-40, 1e13, 1e20, 3e38], dtype)
    y = _value(z)
    np.testing.assert_array_equal(y[[0, 1, 2, 3, 6, 7, 8]], z[[0, 1, 2, 3, 6, 7, 8]])
    np.testing.assert_array_equal(np.signbit(y[:2]), [False, True])
    np.testing.assert_allclose(y[4:6], z[4:6] / 2, rtol=1e-4)
    np.testing.assert_array_equal(_slope(z)[[0, 1, 3, 6, 7, 8]], [0.5, 0.5, np.nan, 1, 1, 1])
    # 0 times infinity, as in PyTorch.
    assert np.isnan(_value(np.array([-np.inf], dtype))).all()


def test_where_a_denominator_of_the_fraction_is_zero() -> None:
    """One of them changes its sign; what is divided by it ends as 0 in the next."""
    pole = np.float32(2.15527534)
    z = np.array([np.nextafter(pole, np.float32(0)), pole, np.nextafter(pole, np.float32(9))])
    z = np.concatenate([z, -z])
    value, slope = _exact(z)
    assert _units(_value(z), value).max() <= 18
    assert _units(_slope(z), slope).max() <= 10
