"""The cases: layers of well-known networks, one for each kind of work that a layer can be.

Shapes are written with channels first; `tensors` lays the arrays out as the case says. A case has a
bias where the layer that it is taken from has one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tensors = dict[str, Array]
T = TypeVar("T")

CONVOLUTIONS = ("conv", "conv_transpose")
LAYOUTS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


@dataclass(frozen=True)
class Case:
    """One layer on one batch.

    Attributes:
        size: of the input, along each spatial axis.
        outputs: channels of the output; those of the input for pools.
        kernel, stride, padding: the same along every axis; kernel 0 is the whole input.
        compute_bound: whether arithmetic, not memory, is what limits it on any machine of today.
        end_to_end: whether planning and checking are timed as well.
    """

    name: str
    operation: str
    batch: int
    channels: int
    size: tuple[int, ...]
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bias: bool = False
    channels_last: bool = False
    compute_bound: bool = False
    end_to_end: bool = False

    @property
    def is_convolution(self) -> bool:
        """Whether it has a weight."""
        return self.operation in CONVOLUTIONS

    @property
    def taps(self) -> tuple[int, ...]:
        """The window, along each spatial axis."""
        return (self.kernel,) * len(self.size) if self.kernel else self.size

    @property
    def config(self) -> dict[str, Any]:
        """The engine's config, less the algorithm."""
        layout = {"layout": LAYOUTS[len(self.size)]} if self.channels_last else {}
        window = {"stride": self.stride, "padding": self.padding}
        if self.is_convolution:
            return {**window, "groups": self.groups, **layout}
        if self.operation == "adaptive_avg_pool":
            return {"output_size": 1, **layout}
        return {"kernel": self.kernel, **window, **layout}

    @property
    def positions(self) -> tuple[int, ...]:
        """The spatial shape of the output."""
        pairs = zip(self.size, self.taps, strict=True)
        if self.operation == "conv_transpose":
            return tuple((s - 1) * self.stride + k - 2 * self.padding for s, k in pairs)
        return tuple((s + 2 * self.padding - k) // self.stride + 1 for s, k in pairs)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of x, weight, bias and dy, channels first."""
        found: dict[str, tuple[int, ...]] = {"x": (self.batch, self.channels, *self.size)}
        if self.operation == "conv":
            found["weight"] = (self.outputs, self.channels // self.groups, *self.taps)
        elif self.operation == "conv_transpose":
            found["weight"] = (self.channels, self.outputs // self.groups, *self.taps)
        if self.bias:
            found["bias"] = (self.outputs,)
        found["dy"] = (self.batch, self.outputs, *self.positions)
        return found

    def tensors(self, seed: int = 0) -> Tensors:
        """Random float32 arrays, of x, weight, bias and dy, in the layout of the case."""
        random = np.random.default_rng(seed)
        found = {}
        for name, shape in self.shapes().items():
            values = random.standard_normal(shape, np.float32)
            if name == "weight":
                values /= np.sqrt(np.float32(prod(shape[1:])))
            found[name] = self.arranged(name, values)
        return found

    def arranged(self, name: str, values: Array) -> Array:
        """An array with channels first, in the layout of the case."""
        if not self.channels_last or name in ("bias", "dbias"):
            return np.ascontiguousarray(values)
        if name in ("weight", "dweight"):
            return np.ascontiguousarray(values.transpose(*range(2, values.ndim), 1, 0))
        return np.ascontiguousarray(np.moveaxis(values, 1, -1))

    def canonical(self, name: str, array: Array) -> Array:
        """A view with channels first of an array in the layout of the case."""
        if not self.channels_last or name in ("bias", "dbias"):
            return array
        if name in ("weight", "dweight"):
            return array.transpose(array.ndim - 1, array.ndim - 2, *range(array.ndim - 2))
        return np.moveaxis(array, -1, 1)


def inputs(tensors: Mapping[str, T], action: str) -> dict[str, T]:
    """Those that an action takes, out of arrays or shapes by name."""
    return {name: a for name, a in tensors.items() if action == "backward" or name != "dy"}


def _square(
    name: str, batch: int, channels: int, side: int, outputs: int, kernel: int, **more: Any
) -> Case:
    return Case(name, "conv", batch, channels, (side, side), outputs, kernel, **more)


def _pool(name: str, operation: str, kernel: int, stride: int, padding: int) -> Case:
    return Case(name, operation, 8, 64, (112, 112), 64, kernel, stride, padding)


_FIRST = (
    _square("vgg-64", 1, 64, 224, 64, 3, padding=1, bias=True, compute_bound=True),
    *(
        _square(f"res-{c}", 8, c, side, c, 3, padding=1, compute_bound=True)
        for c, side in ((64, 56), (128, 28), (256, 14), (512, 7))
    ),
    _square("res-stem", 8, 3, 224, 64, 7, stride=2, padding=3),
    _square("res-1x1-down", 8, 256, 56, 64, 1, compute_bound=True),
    _square("res-1x1-up", 8, 64, 56, 256, 1, compute_bound=True),
    _square("res-down", 8, 128, 56, 128, 3, stride=2, padding=1),
    _square("mobile-dw", 8, 144, 56, 144, 3, padding=1, groups=144),
    _square("mobile-dw-s2", 8, 144, 56, 144, 3, stride=2, padding=1, groups=144),
    _square("convnext-dw", 8, 96, 56, 96, 7, padding=3, groups=96, bias=True),
    _square("resnext", 8, 128, 56, 128, 3, padding=1, groups=32),
    _square("lenet-1", 64, 1, 28, 6, 5, padding=2, bias=True),
    _square("lenet-2", 64, 6, 14, 16, 5, bias=True),
    _square("tiny", 1, 3, 32, 16, 3, padding=1, bias=True, end_to_end=True),
    Case("dcgan-deconv", "conv_transpose", 16, 256, (8, 8), 128, 4, 2, 1),
    Case("unet-deconv", "conv_transpose", 4, 128, (56, 56), 64, 2, 2, bias=True),
    Case("audio-1d", "conv", 8, 64, (4000,), 64, 9, 1, 4, bias=True),
    Case("video-3d", "conv", 2, 16, (16, 56, 56), 32, 3, 1, 1, bias=True),
    _pool("max-2", "max_pool", 2, 2, 0),
    _pool("max-3", "max_pool", 3, 2, 1),
    _pool("avg-3", "avg_pool", 3, 1, 1),
    _pool("global-avg", "adaptive_avg_pool", 0, 1, 0),
)

_LAST = ("res-64", "res-1x1-down", "res-1x1-up", "mobile-dw", "max-2", "max-3")

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        *_FIRST,
        *(
            dataclasses.replace(case, name=f"{case.name}-last", channels_last=True)
            for case in _FIRST
            if case.name in _LAST
        ),
    )
}
"""Every case, by name; a name that ends in -last has channels last."""


def _depthwise(
    name: str, batch: int, channels: int, size: tuple[int, ...], kernel: int, **more: Any
) -> Case:
    operation = more.pop("operation", "conv")
    return Case(name, operation, batch, channels, size, channels, kernel, groups=channels, **more)


WEAK: dict[str, Case] = {
    case.name: case
    for case in (
        _depthwise("dw-1x1", 4, 96, (56, 56), 1),
        _depthwise("dw-small", 64, 64, (8, 8), 3, padding=1),
        _depthwise("dw-s4", 8, 96, (56, 56), 4, stride=4),
        _depthwise("dw-3d", 2, 32, (16, 28, 28), 5, padding=2),
        _depthwise(
            "dw-deconv", 8, 96, (28, 28), 4, stride=2, padding=1, operation="conv_transpose"
        ),
        _depthwise("dw-s2-last", 8, 144, (56, 56), 3, stride=2, padding=1, channels_last=True),
        _square("groups-last", 8, 128, 28, 128, 3, padding=1, groups=8, channels_last=True),
        _pool("max-6", "max_pool", 6, 6, 0),
    )
}
"""Layers at which NumPy is weaker than at most of the cases; no target is of them."""
