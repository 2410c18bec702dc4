"""Each activation and its derivative at one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Pair = tuple[float, float]

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def identity(v: float) -> Pair:
    return v, 1.0


def relu(v: float) -> Pair:
    return (0.0, 0.0) if v <= 0 else (v, 1.0)


def leaky_relu(v: float, alpha: float = 0.01) -> Pair:
    return (v, 1.0) if v > 0 else (alpha * v, alpha)


def elu(v: float, alpha: float = 1.0) -> Pair:
    return (v, 1.0) if v > 0 else (alpha * math.expm1(v), alpha * math.exp(v))


def selu(v: float) -> Pair:
    value, slope = elu(v, SELU_ALPHA)
    return SELU_SCALE * value, SELU_SCALE * slope


def gelu(v: float, approximate: bool = False) -> Pair:
    if approximate:
        root = math.sqrt(2 / math.pi)
        t = math.tanh(root * (v + 0.044715 * v**3))
        return 0.5 * v * (1 + t), 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * root * (
            1 + 3 * 0.044715 * v * v
        )
    phi = 0.5 * math.erfc(-v / math.sqrt(2))
    return v * phi, phi + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)


def sigmoid(v: float) -> Pair:
    e = math.exp(-abs(v))
    s = 1 / (1 + e) if v >= 0 else e / (1 + e)
    return s, e / (1 + e) ** 2


def silu(v: float) -> Pair:
    s, slope = sigmoid(v)
    return v * s, s + v * slope


def hard_sigmoid(v: float, alpha: float = 0.2, beta: float = 0.5) -> Pair:
    line = alpha * v + beta
    return (line, alpha) if 0 < line < 1 else (min(1.0, max(0.0, line)), 0.0)


def tanh(v: float) -> Pair:
    t = math.tanh(v)
    return t, 1 - t * t


def softplus(v: float) -> Pair:
    return max(v, 0.0) + math.log1p(math.exp(-abs(v))), sigmoid(v)[0]


def exponential(v: float) -> Pair:
    return math.exp(v), math.exp(v)


def affine(v: float, slope: float = 1.0, intercept: float = 0.0) -> Pair:
    return slope * v + intercept, slope


NAMES: dict[str, Callable[..., Pair]] = {
    f.__name__: f
    for f in (
        identity,
        relu,
        leaky_relu,
        elu,
        selu,
        gelu,
        silu,
        sigmoid,
        hard_sigmoid,
        tanh,
        softplus,
        exponential,
        affine,
    )
}


def apply(activation: Any, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the activation of every number and its derivative there."""
    if activation is None:
        activation = "identity"
    given = {"name": activation} if isinstance(activation, str) else dict(activation)
    function = NAMES[given.pop("name")]
    value, slope = np.empty_like(values), np.empty_like(values)
    for i in np.ndindex(values.shape):
        value[i], slope[i] = function(float(values[i]), **given)
    return value, slope


def forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    return {"y": apply(config, tensors["x"])[0]}


def backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    return {"dx": tensors["dy"] * apply(config, tensors["x"])[1]}
