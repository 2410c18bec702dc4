"""Elementwise activations and their derivatives, by the names of the field.

Each is a pair of functions of `z`, the value before the activation; the derivative is with respect
to `z`. Formulas are those of PyTorch's and ONNX's operators of the same names. Functions get and
give contiguous arrays: NumPy's vector and scalar loops round transcendental functions differently,
and only contiguous data is sure to take the vector loop, whatever its length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.choice import chosen
from engine.kernels.erf import erfc
from engine.threads import check_stop

Array = NDArray[Any]
Function = Callable[..., Array]

BLOCK = 1 << 16
"""Elements worked on at a time, so that temporaries stay in the cache."""


@dataclass(frozen=True)
class Activation:
    """An activation with its parameters settled; hashable."""

    name: str
    parameters: tuple[tuple[str, float | bool], ...] = ()

    def value(self, z: Array) -> Array:
        """f(z) as a new array."""
        return TABLE[self.name].value(z, **dict(self.parameters))

    def derivative(self, z: Array) -> Array:
        """f'(z) as a new array."""
        return TABLE[self.name].derivative(z, **dict(self.parameters))

    def workspace_bytes(self, itemsize: int) -> int:
        """Temporaries of either function, for numbers of that size."""
        return TABLE[self.name].arrays * BLOCK * itemsize

    def backward(self, z: Array, dy: Array, dz: Array) -> None:
        """Write dy · f'(z) to `dz`."""
        backward = TABLE[self.name].backward
        if backward is None:
            np.multiply(dy, self.derivative(z), out=dz)
        else:
            backward(z, dy, dz, **dict(self.parameters))


@dataclass(frozen=True)
class Definition:
    """An activation's two functions, its parameters with their defaults, and one line about it.

    `arrays` is how many of a block the functions hold at a time, at most.
    `backward` writes dy · f'(z) where that is no product: as in PyTorch, where the activation is constant
    no gradient passes, not even an infinite one.
    """

    value: Function
    derivative: Function
    help: str
    defaults: tuple[tuple[str, float | bool], ...] = ()
    backward: Callable[..., None] | None = None
    arrays: int = 6


def _above(z: Array) -> Array:
    """max(z, 0), and 0 for -0; two passes that vector loops take, where one against a number is none."""
    y = np.clip(z, 0, np.inf)
    y += 0
    return y


def _decay(z: Array) -> Array:
    """exp(−|z|), which overflows on neither side."""
    return np.exp(-np.abs(z))


def _sigmoid_of(z: Array, decay: Array) -> Array:
    # The larger of the two is 1 from 0 on, as the decay is at most 1.
    y = (z >= 0).astype(z.dtype)
    np.maximum(y, decay, out=y)
    y /= 1 + decay
    return y


def _sigmoid(z: Array) -> Array:
    return _sigmoid_of(z, _decay(z))


def _sigmoid_slope_of(decay: Array) -> Array:
    # s·(1 − s), but not so written: where s is near 1 the difference would have few digits left.
    below = 1 + decay
    below *= below
    return np.divide(decay, below, out=below)


def _sigmoid_slope(z: Array) -> Array:
    return _sigmoid_slope_of(_decay(z))


def _tanh_slope(z: Array) -> Array:
    # 1 − tanh² z, without the difference.
    return 4 * _sigmoid_slope(2 * z)


def _elu(z: Array, alpha: float, scale: float = 1.0) -> Array:
    # Adding 0 makes 0 of -0.
    y = np.expm1(np.clip(z, -np.inf, 0) + 0)
    y *= alpha
    y = chosen(z > 0, z, y)
    y *= scale
    return y


def _elu_slope(z: Array, alpha: float, scale: float = 1.0) -> Array:
    slope = np.exp(np.clip(z, -np.inf, 0))
    slope *= alpha
    slope = chosen(z > 0, np.ones(1, z.dtype), slope)
    slope *= scale
    return slope


_SELU = {"alpha": 1.6732632423543772848170429916717, "scale": 1.0507009873554804934193349852946}
_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_FLAT = 1000


def _gelu_inner(z: Array) -> Array:
    return _ROOT_TWO_OVER_PI * (z + _CUBIC * z * z * z)


def _gelu(z: Array, approximate: bool) -> Array:
    if approximate:
        # (1 + tanh u) / 2 is the sigmoid of 2u.
        return z * _sigmoid(2 * _gelu_inner(z))
    return 0.5 * z * erfc(-z * _ROOT_HALF)


def _gelu_slope(z: Array, approximate: bool) -> Array:
    if approximate:
        # Long before this the slope is 0 or 1, as without the bound; beyond it a cube overflows to NaN.
        z = np.clip(z, -_FLAT, _FLAT)
        u = 2 * _gelu_inner(z)
        inner = 2 * _ROOT_TWO_OVER_PI * (1 + 3 * _CUBIC * z * z)
        decay = _decay(u)
        return _sigmoid_of(u, decay) + z * _sigmoid_slope_of(decay) * inner
    density = np.exp(-0.5 * z * z) * (0.5 * _ROOT_TWO_OVER_PI)
    return 0.5 * erfc(-z * _ROOT_HALF) + z * density


def _silu_slope(z: Array) -> Array:
    decay = _decay(z)
    slope = _sigmoid_slope_of(decay)
    slope *= z
    slope += _sigmoid_of(z, decay)
    return slope


def _hard_sigmoid(z: Array, alpha: float, beta: float) -> Array:
    return np.clip(alpha * z + beta, 0, 1)


def _hard_sigmoid_slope(z: Array, alpha: float, beta: float) -> Array:
    line = alpha * z + beta
    return np.where((line > 0) & (line < 1), np.full_like(z, alpha), np.zeros_like(z))


def _hard_sigmoid_backward(z: Array, dy: Array, dz: Array, alpha: float, beta: float) -> None:
    line = alpha * z + beta
    inside = (line > 0) & (line < 1)
    _shut(~inside, alpha * dy, dz)


def _softplus(z: Array) -> Array:
    y = np.log1p(_decay(z))
    y += np.clip(z, 0, np.inf)
    return y


def _relu_slope(z: Array) -> Array:
    # "not <= 0" and not "> 0": NaN passes the gradient on, as in PyTorch.
    return np.where(z <= 0, np.zeros_like(z), np.ones_like(z))


def _relu_backward(z: Array, dy: Array, dz: Array) -> None:
    _shut(z <= 0, dy, dz)


def _shut(flat: Array, dy: Array, dz: Array) -> None:
    """Write dy to `dz`, but a zero of its sign where `flat`.

    By their bits: to choose number by number takes several times as long where no order is in them.
    """
    bits = np.dtype(f"i{dy.itemsize}")
    mask = flat.astype(bits)
    mask -= 1
    mask |= -1 << 8 * dy.itemsize - 1
    np.bitwise_and(dy.view(bits), mask, out=dz.view(bits))


def _leaky(z: Array, alpha: float) -> Array:
    line = alpha * z
    # What alpha is in the dtype counts: it may be 0 there.
    if 0 < z.dtype.type(alpha) <= 1:
        return np.maximum(z, line, out=line)
    return chosen(z > 0, z, line)


def _leaky_slope(z: Array, alpha: float) -> Array:
    return chosen(z > 0, np.ones(1, z.dtype), np.full(1, alpha, z.dtype))


TABLE: dict[str, Definition] = {
    "identity": Definition(np.copy, np.ones_like, "z"),
    "relu": Definition(
        _above,
        _relu_slope,
        "max(z, 0); gradient 0 at 0",
        backward=_relu_backward,
    ),
    "leaky_relu": Definition(
        _leaky, _leaky_slope, "z above 0, alpha·z elsewhere", (("alpha", 0.01),)
    ),
    "elu": Definition(
        _elu, _elu_slope, "z above 0, alpha·(exp z − 1) elsewhere", (("alpha", 1.0),)
    ),
    "selu": Definition(
        lambda z: _elu(z, **_SELU), lambda z: _elu_slope(z, **_SELU), "self-normalizing ELU"
    ),
    "gelu": Definition(
        _gelu,
        _gelu_slope,
        "z·Φ(z), or its tanh form",
        (("approximate", False),),
        arrays=13,
    ),
    "silu": Definition(lambda z: z * _sigmoid(z), _silu_slope, "z·sigmoid(z)"),
    "sigmoid": Definition(_sigmoid, _sigmoid_slope, "1 / (1 + exp(−z))"),
    "hard_sigmoid": Definition(
        _hard_sigmoid,
        _hard_sigmoid_slope,
        "alpha·z + beta, clipped to [0, 1]",
        (("alpha", 0.2), ("beta", 0.5)),
        _hard_sigmoid_backward,
    ),
    "tanh": Definition(np.tanh, _tanh_slope, "tanh z"),
    "softplus": Definition(_softplus, _sigmoid, "log(1 + exp z)"),
    "exponential": Definition(np.exp, np.exp, "exp z"),
    "affine": Definition(
        lambda z, slope, intercept: slope * z + intercept,
        lambda z, slope, intercept: np.full_like(z, slope),  # noqa: ARG005
        "slope·z + intercept",
        (("slope", 1.0), ("intercept", 0.0)),
    ),
}
IDENTITY = Activation("identity")


def activate(activation: Activation, z: Array, y: Array) -> None:
    """Write f(z) to `y`; both contiguous and of one size; `y` may be `z`."""
    z, y = z.reshape(-1), y.reshape(-1)
    with np.errstate(all="ignore"):
        for lo in range(0, z.size, BLOCK):
            check_stop()
            y[lo : lo + BLOCK] = activation.value(z[lo : lo + BLOCK])


def activate_backward(activation: Activation, z: Array, dy: Array, dz: Array) -> None:
    """Write dy · f'(z) to `dz`; all contiguous and of one size; `dz` may be `z`."""
    z, dy, dz = z.reshape(-1), dy.reshape(-1), dz.reshape(-1)
    with np.errstate(all="ignore"):
        for lo in range(0, z.size, BLOCK):
            check_stop()
            own = slice(lo, lo + BLOCK)
            activation.backward(z[own], dy[own], dz[own])
