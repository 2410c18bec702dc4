"""Activations against the standard library, their derivatives against differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.kernels.activations import table
from engine.kernels.activations.table import TABLE, Activation, activate, activate_backward

Array = NDArray[Any]

Z = np.array([-30.0, -6.0, -2.6, -1.0, -0.3, 0.2, 0.47, 1.5, 2.4, 7.0, 40.0])
SCALAR: dict[str, Callable[[float], float]] = {
    "identity": lambda z: z,
    "relu": lambda z: max(z, 0),
    "leaky_relu": lambda z: z if z > 0 else 0.01 * z,
    "elu": lambda z: z if z > 0 else math.expm1(z),
    "selu": lambda z: 1.0507009873554805 * (z if z > 0 else 1.6732632423543772 * math.expm1(z)),
    "gelu": lambda z: 0.5 * z * math.erfc(-z / math.sqrt(2)),
    "silu": lambda z: z / (1 + math.exp(-z)),
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "hard_sigmoid": lambda z: min(max(0.2 * z + 0.5, 0), 1),
    "tanh": math.tanh,
    "softplus": lambda z: math.log1p(math.exp(z)),
    "exponential": math.exp,
    "affine": lambda z: z,
}


def value(activation: Activation, z: Array) -> Array:
    y = np.empty_like(z)
    activate(activation, z, y)
    return y


def derivative(activation: Activation, z: Array) -> Array:
    dz = np.empty_like(z)
    activate_backward(activation, z, np.ones_like(z), dz)
    return dz


@pytest.mark.parametrize("name", TABLE)
def test_value(name: str) -> None:
    y = value(Activation(name, TABLE[name].defaults), Z)
    np.testing.assert_allclose(y, [SCALAR[name](z) for z in Z], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("other", [False, True])
def test_derivative_is_the_slope(name: str, other: bool) -> None:
    parameters = tuple(
        (key, value if not other else (not value if isinstance(value, bool) else value + 0.3))
        for key, value in TABLE[name].defaults
    )
    activation = Activation(name, parameters)
    z = Z[1:-1]
    h = 1e-5
    slope = (value(activation, z + h) - value(activation, z - h)) / (2 * h)
    np.testing.assert_allclose(derivative(activation, z), slope, rtol=1e-7, atol=1e-8)
    dz = np.empty_like(z)
    activate_backward(activation, z, np.full_like(z, 3), dz)
    np.testing.assert_allclose(dz, 3 * derivative(activation, z))


@pytest.mark.parametrize(
    "activation",
    [
        *(Activation(name, TABLE[name].defaults) for name in ("sigmoid", "tanh", "silu", "gelu")),
        Activation("gelu", (("approximate", True),)),
    ],
)
def test_slopes_keep_their_digits_where_they_are_all_but_constant(activation: Activation) -> None:
    z = np.array([-9, -7.5, -5, -3, 3, 5, 7.5, 9], np.float32)
    exact = derivative(activation, z.astype(np.float64))
    np.testing.assert_allclose(derivative(activation, z), exact, rtol=2e-5)


def test_tanh_slope_against_the_standard_library() -> None:
    expected = [1 / math.cosh(z) ** 2 for z in Z]
    np.testing.assert_allclose(derivative(Activation("tanh"), Z), expected, rtol=1e-13)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_element_rounds_alike_wherever_it_stands(name: str, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(5)
    z = (rng.standard_normal(1031) * 4).astype(dtype)
    activation = Activation(name, TABLE[name].defaults)
    for function in (value, derivative):
        whole = function(activation, z)
        assert whole.dtype == dtype
        for lo, hi in ((0, 1), (3, 10), (17, 100), (1030, 1031)):
            assert np.array_equal(whole[lo:hi], function(activation, z[lo:hi].copy()))


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_bit_depends_on_blocks_or_on_whether_it_is_done_in_place(
    name: str, dtype: type[np.floating], approximate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = TABLE[name].defaults if name != "gelu" else (("approximate", approximate),)
    activation = Activation(name, parameters)
    rng = np.random.default_rng(6)
    z, dy = (rng.standard_normal(1031) * 4).astype(dtype), rng.standard_normal(1031).astype(dtype)
    z[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, -14.2, -700]
    y, dz = value(activation, z), np.empty_like(z)
    activate_backward(activation, z, dy, dz)
    monkeypatch.setattr(table, "BLOCK", 100)
    for at in (0, 1):
        mine = np.append(z[:at], z)[at:]
        activate(activation, mine, mine)
        np.testing.assert_array_equal(mine, y)
        mine = np.append(z[:at], z)[at:]
        activate_backward(activation, mine, dy, mine)
        np.testing.assert_array_equal(mine, dz)


@pytest.mark.parametrize("name", TABLE)
def test_every_nan_has_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "BLOCK", 16)
    activation = Activation(name, TABLE[name].defaults)
    z, dy = np.ones(37, np.float32), np.ones(37, np.float32)
    z.view(np.uint32)[::3] = 0xFFC00001
    z.view(np.uint32)[1::3] = 0x7FC00123
    dy.view(np.uint32)[2::6] = 0xFFC01000
    y, dz = value(activation, z), np.empty_like(z)
    activate_backward(activation, z, dy, dz)
    for found in (y, dz):
        assert set(found.view(np.uint32)[np.isnan(found)].tolist()) == {0x7FC00000}


@pytest.mark.parametrize(
    "activation", [Activation("silu"), Activation("gelu", (("approximate", True),))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_end_as_zeros_and_ones(activation: Activation, dtype: type[np.floating]) -> None:
    """With the sign of neither side, and NaN where the formula has none."""
    z = np.array([-1e4, -1e30, 1e4, 1e30, np.finfo(dtype).max], dtype)
    slope = derivative(activation, z)
    np.testing.assert_array_equal(slope, [0, 0, 1, 1, 1])
    assert not np.signbit(slope).any()
    if activation.name == "silu":
        assert np.isnan(derivative(activation, np.array([np.inf, -np.inf, np.nan], dtype))).all()


def test_extremes_stay_finite_or_become_what_they_should() -> None:
    z = np.array([-np.inf, -1e4, 1e4, np.inf, np.nan])
    sigmoid = value(Activation("sigmoid"), z)
    softplus = value(Activation("softplus"), z)
    np.testing.assert_array_equal(sigmoid, [0, 0, 1, 1, np.nan])
    np.testing.assert_array_equal(softplus, [0, 0, 1e4, np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("approximate", [False, True])
def test_the_slope_of_gelu_is_flat_far_out(approximate: bool, dtype: type[np.floating]) -> None:
    gelu = Activation("gelu", (("approximate", approximate),))
    far = np.array([999, 1001, 1e13, 1e30, np.finfo(dtype).max], dtype)
    np.testing.assert_array_equal(derivative(gelu, far), np.ones_like(far))
    np.testing.assert_array_equal(derivative(gelu, -far), np.zeros_like(far))
    assert np.isnan(derivative(gelu, np.array([np.nan], dtype))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["relu", "hard_sigmoid"])
def test_no_gradient_passes_where_it_is_constant(name: str, dtype: type[np.floating]) -> None:
    """Not even an infinite one, as in PyTorch; finite ones leave a zero of their sign."""
    activation = Activation(name, TABLE[name].defaults)
    z = np.array([-np.inf, -9, -9, -9, -9, -9, *[0.0, -0.0] * 3, *[-9] * 6], dtype)
    if name == "hard_sigmoid":
        z[12:] = 9
    dy = np.tile(np.array([np.inf, -np.inf, np.nan, 3, -3, -0.0], dtype), 3)
    dz = np.full_like(dy, 7)
    activate_backward(activation, z, dy, dz)
    closed = np.ones(18, bool)
    if name == "hard_sigmoid":
        closed[6:12] = False
        np.testing.assert_allclose(dz[6:12], 0.2 * dy[6:12], rtol=1e-6)
    np.testing.assert_array_equal(dz[closed], 0)
    finite = closed & np.isfinite(dy)
    np.testing.assert_array_equal(np.signbit(dz[finite]), np.signbit(dy[finite]))


def test_relu_passes_the_gradient_of_a_nan_on() -> None:
    z, dy = np.full(3, np.nan), np.array([2.0, -np.inf, np.nan])
    activate_backward(Activation("relu"), z, dy, z)
    np.testing.assert_array_equal(z, dy)


SPECIAL = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-40,
    5e-324,
    1e-3,
    -1e-3,
    3,
    -3,
    90,
    -800,
    1e38,
    -1e38,
)
PLAIN: dict[str, Callable[[Array, float], Array]] = {
    "relu": lambda z, _: np.maximum(z, 0),
    "leaky_relu": lambda z, alpha: np.where(z > 0, z, alpha * z),
    "elu": lambda z, alpha: np.where(z > 0, z, alpha * np.expm1(np.minimum(z, 0))),
}
PLAIN_SLOPES: dict[str, Callable[[Array, float], Array]] = {
    "leaky_relu": lambda z, alpha: np.where(z > 0, z.dtype.type(1), z.dtype.type(alpha)),
    "elu": lambda z, alpha: np.where(z > 0, 1, alpha * np.exp(np.minimum(z, 0))),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "alpha", [0.01, 0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 2.5, -0.3, 1e-40, 1e-50, 1e38, -1e38]
)
@pytest.mark.parametrize("name", PLAIN)
def test_every_bit_is_that_of_the_choice_one_by_one(
    name: str, alpha: float, dtype: type[np.floating]
) -> None:
    """Zeros' signs and infinities too, whatever the alpha, also one that is 0 in the dtype."""
    drawn = np.random.default_rng(0).standard_normal(1000) * 5
    z = np.concatenate([np.array(SPECIAL), drawn]).astype(dtype)
    activation = Activation(name, (("alpha", alpha),) if TABLE[name].defaults else ())
    with np.errstate(all="ignore"):
        pairs = [(value(activation, z), PLAIN[name](z, alpha))]
        if name in PLAIN_SLOPES:
            pairs.append((derivative(activation, z), PLAIN_SLOPES[name](z, alpha)))
    for found, expected in pairs:
        assert found.dtype == expected.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])
