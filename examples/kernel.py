"""A convolution in two dimensions as plain loops, to be replaced by yours: see `check_kernel.py`.

Whatever language a kernel is in, these two functions are what is checked: they may call a library through
ctypes, or run a program and read what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]


class Layer(NamedTuple):
    """A layer's configuration, one value for each spatial axis; `groups` share the channels out."""

    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int


def forward(layer: Layer, x: Array, weight: Array, bias: Array) -> Array:
    """y (N, O, P, Q) from x (N, C, H, W), weight (O, C / groups, KH, KW) and bias (O,)."""
    y = np.zeros((len(x), len(weight), *_extents(layer, x, weight)), x.dtype)
    padded = _padded(layer, x)
    for read, outputs, channels, tap in _taps(layer, x, weight, y):
        part = padded[:, channels, *read]
        y[:, outputs] += np.einsum("nchw,oc->nohw", part, weight[outputs, :, *tap])
    return y + bias[:, None, None]


def backward(layer: Layer, x: Array, weight: Array, dy: Array) -> tuple[Array, Array, Array]:
    """dx, dweight and dbias, the gradients of a loss whose gradient with respect to y is dy."""
    padded = _padded(layer, x)
    dx, dweight = np.zeros_like(padded), np.zeros_like(weight)
    for read, outputs, channels, tap in _taps(layer, x, weight, dy):
        part, given = padded[:, channels, *read], dy[:, outputs]
        dx[:, channels, *read] += np.einsum("nohw,oc->nchw", given, weight[outputs, :, *tap])
        dweight[outputs, :, *tap] = np.einsum("nohw,nchw->oc", given, part)
    (top, left), (height, width) = layer.padding, x.shape[2:]
    return dx[:, :, top : top + height, left : left + width], dweight, dy.sum((0, 2, 3))


def _padded(layer: Layer, x: Array) -> Array:
    return np.pad(x, ((0, 0), (0, 0), *((p, p) for p in layer.padding)))


def _extents(layer: Layer, x: Array, weight: Array) -> list[int]:
    """The output's height and width."""
    axes = zip(x.shape[2:], weight.shape[2:], *layer[:3], strict=True)
    return [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in axes]


Tap = tuple[tuple[slice, slice], slice, slice, Pair]


def _taps(layer: Layer, x: Array, weight: Array, y: Array) -> Iterator[Tap]:
    """For each tap and group: what is read of the padded x, channels of y and of x, and the tap."""
    outputs, channels = len(weight) // layer.groups, x.shape[1] // layer.groups
    for i, j in np.ndindex(*weight.shape[2:]):
        down, right = (
            slice(k * d, k * d + s * (size - 1) + 1, s)
            for k, d, s, size in zip((i, j), layer.dilation, layer.stride, y.shape[2:], strict=True)
        )
        for g in range(layer.groups):
            made = slice(g * outputs, (g + 1) * outputs)
            yield (down, right), made, slice(g * channels, (g + 1) * channels), (i, j)
