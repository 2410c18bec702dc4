"""Elementwise activations and their gradients, by the names of the field.

Formulas are those of PyTorch's and ONNX's operators of the same names. Functions get contiguous arrays,
a block at a time: NumPy's vector and scalar loops round transcendental functions differently, and only
contiguous data is sure to take the vector loop, whatever its length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.activations import gelu, rectifiers, sigmoids
from engine.kernels.activations.rows import Rows
from engine.kernels.nan import settle
from engine.threads import check_stop

Array = NDArray[Any]

BLOCK = 1 << 16
"""Elements worked on at a time: of fewer, the calls take longer than what a nearer cache saves."""


@dataclass(frozen=True)
class Activation:
    """An activation with its parameters settled; hashable."""

    name: str
    parameters: tuple[tuple[str, float | bool], ...] = ()

    def workspace_bytes(self, itemsize: int) -> int:
        """What either function holds beside its tensors, for numbers of that size."""
        definition = TABLE[self.name]
        # One more for masks.
        return (definition.rows + definition.made + 1) * BLOCK * itemsize


@dataclass(frozen=True)
class Definition:
    """An activation's two functions, its parameters with their defaults, and one line about it.

    `value(z, y, rows)` writes f(z) to `y`, which may be `z`, and `gradient(z, dy, dz, rows)` dy · f'(z) to
    `dz`, which may be `z`. Not all gradients are products: as in PyTorch, where relu and hard_sigmoid are
    constant none passes, not even an infinite one. `rows` is how many of them either takes, and `made`
    how many arrays of a block it makes besides, at most.
    """

    value: Callable[..., None]
    gradient: Callable[..., None]
    help: str
    defaults: tuple[tuple[str, float | bool], ...] = ()
    rows: int = 3
    made: int = 0


def _times(slope: Callable[..., Array]) -> Callable[..., None]:
    """The gradient that is a product with the slope."""

    def gradient(z: Array, dy: Array, dz: Array, rows: Rows, **parameters: Any) -> None:
        np.multiply(dy, slope(z, rows, **parameters), out=dz)

    return gradient


def _gelu(z: Array, y: Array, rows: Rows, approximate: bool) -> None:
    (sigmoids.gelu_by_tanh if approximate else gelu.gelu)(z, y, rows)


def _gelu_slope(z: Array, rows: Rows, approximate: bool) -> Array:
    return (sigmoids.gelu_by_tanh_slope if approximate else gelu.gelu_slope)(z, rows)


def _affine(z: Array, y: Array, rows: Rows, slope: float, intercept: float) -> None:
    np.add(np.multiply(z, slope, out=rows[0]), intercept, out=y)


_SELU = {"alpha": 1.6732632423543772848170429916717, "scale": 1.0507009873554804934193349852946}

TABLE: dict[str, Definition] = {
    "identity": Definition(
        lambda z, y, rows: np.copyto(y, z),  # noqa: ARG005
        lambda z, dy, dz, rows: np.copyto(dz, dy),  # noqa: ARG005
        "z",
        rows=0,
    ),
    "relu": Definition(
        rectifiers.relu, rectifiers.relu_gradient, "max(z, 0); gradient 0 at 0", rows=1
    ),
    "leaky_relu": Definition(
        rectifiers.leaky,
        _times(rectifiers.leaky_slope),
        "z above 0, alpha·z elsewhere",
        (("alpha", 0.01),),
        rows=2,
        made=1,
    ),
    "elu": Definition(
        rectifiers.elu,
        _times(rectifiers.elu_slope),
        "z above 0, alpha·(exp z − 1) elsewhere",
        (("alpha", 1.0),),
        made=1,
    ),
    "selu": Definition(
        lambda z, y, rows: rectifiers.elu(z, y, rows, **_SELU),
        _times(lambda z, rows: rectifiers.elu_slope(z, rows, **_SELU)),
        "self-normalizing ELU",
    ),
    "gelu": Definition(
        _gelu,
        _times(_gelu_slope),
        "z·Φ(z), or its tanh form",
        (("approximate", False),),
        rows=6,
        made=10,
    ),
    "silu": Definition(sigmoids.silu, _times(sigmoids.silu_slope), "z·sigmoid(z)", rows=4),
    "sigmoid": Definition(sigmoids.sigmoid, _times(sigmoids.sigmoid_slope), "1 / (1 + exp(−z))"),
    "hard_sigmoid": Definition(
        rectifiers.hard_sigmoid,
        rectifiers.hard_sigmoid_gradient,
        "alpha·z + beta, clipped to [0, 1]",
        (("alpha", 0.2), ("beta", 0.5)),
        rows=2,
    ),
    "tanh": Definition(
        lambda z, y, rows: np.tanh(z, out=y),  # noqa: ARG005
        _times(sigmoids.tanh_slope),
        "tanh z",
        rows=2,
    ),
    "softplus": Definition(sigmoids.softplus, _times(sigmoids.sigmoid_itself), "log(1 + exp z)"),
    "exponential": Definition(
        lambda z, y, rows: np.exp(z, out=y),  # noqa: ARG005
        lambda z, dy, dz, rows: np.multiply(dy, np.exp(z, out=dz), out=dz),  # noqa: ARG005
        "exp z",
        rows=0,
    ),
    "affine": Definition(
        _affine,
        lambda z, dy, dz, rows, slope, intercept: np.multiply(dy, slope, out=dz),  # noqa: ARG005
        "slope·z + intercept",
        (("slope", 1.0), ("intercept", 0.0)),
        rows=1,
    ),
}
IDENTITY = Activation("identity")


def activate(activation: Activation, z: Array, y: Array) -> None:
    """Write f(z) to `y`, its NaN settled; both contiguous and of one size; `y` may be `z`."""
    _by_blocks(activation, TABLE[activation.name].value, z, y)


def activate_backward(activation: Activation, z: Array, dy: Array, dz: Array) -> None:
    """Write dy · f'(z) to `dz`, its NaN settled; all contiguous and of one size; `dz` may be `z`."""
    _by_blocks(activation, TABLE[activation.name].gradient, z, dy, dz)


def _by_blocks(activation: Activation, function: Callable[..., None], *tensors: Array) -> None:
    flat = [tensor.reshape(-1) for tensor in tensors]
    z, parameters = flat[0], dict(activation.parameters)
    with np.errstate(all="ignore"):
        rows = Rows(TABLE[activation.name].rows, min(BLOCK, z.size), z.dtype)
        if z.size <= BLOCK:
            check_stop()
            function(*flat, rows, **parameters)
            settle(flat[-1])
            return
        for lo in range(0, z.size, BLOCK):
            check_stop()
            if z.size - lo < BLOCK:
                rows.shorten(z.size - lo)
            blocks = [tensor[lo : lo + BLOCK] for tensor in flat]
            function(*blocks, rows, **parameters)
            settle(blocks[-1])
