"""Small correlations of images and volumes, and random arrays for them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import numpy as np

from engine.geometry import Axis, strided_out
from engine.kernels.correlation import Correlation

Pair = tuple[int, int]
Numbers = tuple[int, ...]
"""One along each axis."""


class Shape(TypedDict):
    """What `image` must be given, and what of the rest differs from case to case."""

    size: Numbers
    kernel: Numbers
    padding: Pair
    stride: NotRequired[Numbers]
    dilation: NotRequired[Numbers]


IMAGES: list[Shape] = [
    {"size": (9, 9), "kernel": (5, 5), "padding": (2, 3)},
    {"size": (4, 30), "kernel": (4, 4), "padding": (0, 0)},
    {"size": (21, 17), "kernel": (7, 3), "padding": (3, 3)},
    {"size": (5, 3), "kernel": (4, 7), "padding": (6, 6)},
    {"size": (13, 12), "kernel": (3, 3), "padding": (1, 1), "stride": (2, 2)},
    {"size": (11, 16), "kernel": (3, 4), "padding": (1, 0), "stride": (3, 2), "dilation": (2, 3)},
    {"size": (6, 7), "kernel": (1, 1), "padding": (0, 0)},
    {"size": (1, 8), "kernel": (1, 3), "padding": (0, 1), "stride": (4, 1)},
    {"size": (3, 9), "kernel": (2, 2), "padding": (9, 0), "stride": (1, 5)},
]

VOLUMES: list[Shape] = [
    {"size": (5, 6, 7), "kernel": (3, 3, 3), "padding": (1, 1)},
    {"size": (6, 5, 9), "kernel": (1, 3, 4), "padding": (0, 2)},
    {"size": (7, 8, 5), "kernel": (3, 1, 2), "padding": (2, 1), "stride": (2, 3, 2)},
    {"size": (9, 7, 8), "kernel": (2, 3, 3), "padding": (3, 1), "dilation": (4, 2, 1)},
    {"size": (2, 3, 3), "kernel": (2, 2, 2), "padding": (5, 5), "stride": (3, 2, 1)},
]


def image(
    size: Numbers,
    kernel: Numbers,
    padding: Pair,
    stride: Numbers = (),
    dilation: Numbers = (),
    itemsize: int = 8,
    groups: int = 9,
    channels: int = 1,
    outputs: int = 1,
    channels_last: bool = False,
) -> Correlation:
    """A correlation whose every axis is padded by `padding` before and behind; strides are 1 where none
    are given, and so are dilations."""
    axes, ones = [], (1,) * len(size)
    for n, k, s, d in zip(size, kernel, stride or ones, dilation or ones, strict=True):
        out = strided_out(n, d * (k - 1) + 1, s, *padding)
        axes.append(Axis(n, k, s, d, *padding, out))
    return Correlation(
        tuple(axes), groups, channels, outputs, "zeros", itemsize, channels_last=channels_last
    )


def line(size: int, kernel: int, stride: int, low: int, outputs: int) -> Correlation:
    """A correlation of one channel along one axis, padded by `low` before and behind."""
    out = strided_out(size, kernel, stride, low, low)
    axis = Axis(size, kernel, stride, 1, low, low, out)
    return Correlation((axis,), 1, 1, outputs, "zeros", 4)


def tensors(c: Correlation, samples: int = 3) -> tuple[np.ndarray, ...]:
    """x, w, bias and dy."""
    rng = np.random.default_rng(0)
    shapes = (
        (samples, c.groups, c.channels, *(a.size for a in c.axes)),
        (c.groups, c.outputs, c.channels * c.taps),
        (c.groups, c.outputs),
        (samples, c.groups, c.outputs, *c.positions),
    )
    return tuple(rng.standard_normal(shape).astype(f"f{c.itemsize}") for shape in shapes)


def summed(c: Correlation, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The gradient of x by its definition, output by output and tap by tap, in float64."""
    dx = np.zeros((len(dy), c.groups, c.channels, *(a.size for a in c.axes)))
    taps = w.astype("f8").reshape(c.groups, c.outputs, c.channels, *c.kernel)
    for out in np.ndindex(*c.positions):
        for tap in np.ndindex(*c.kernel):
            place: tuple[Any, ...] = tuple(
                a.input_of(t, o) for a, t, o in zip(c.axes, tap, out, strict=True)
            )
            if all(0 <= i < a.size for a, i in zip(c.axes, place, strict=True)):
                for g in range(c.groups):
                    upstream = dy[(slice(None), g, slice(None), *out)].astype("f8")
                    dx[(slice(None), g, slice(None), *place)] += upstream @ taps[(g, ..., *tap)]
    return dx
