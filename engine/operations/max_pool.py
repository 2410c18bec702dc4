"""Max pooling with indices, ties, ceil mode and dilation.

    y[n, c, p] = max over k of x[n, c, p·stride + k·dilation − low]

As PyTorch's MaxPool1d to 3d. NaN wins over every number. The gradient goes to the first maximum of a
window in row-major order, or to all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import MissingField, ShapeMismatch, fail
from engine.geometry import Axis, Tile
from engine.indices import check_indices
from engine.kernels.patches import within
from engine.kernels.pooling import (
    Pooling,
    for_each_plane,
    route,
    scatter_indices,
    slices,
    spread_ties,
    tile_argmax,
    tile_max,
)
from engine.layouts import channels_first
from engine.operation import Tails
from engine.options import Choice, Flag, Shape, option
from engine.plans import Action, Plan
from engine.pool import Geometry, Pool, WindowConfig

Array = NDArray[Any]
Backward = Callable[[Pooling, Array, Array, Tile, Array], None]


@dataclass(frozen=True)
class MaxPoolConfig(WindowConfig):
    """The fields of max_pool."""

    pad_value: str = option(
        Choice(("lowest", "zero")), "What padding holds: less than every number, or 0.", "lowest"
    )
    ties: str = option(
        Choice(("first", "all")), "Who gets the gradient among equal maxima.", "first"
    )
    return_indices: bool = option(Flag(), "True gives the positions of the maxima too.", False)
    input_shape: tuple[int, ...] | None = option(
        Shape(), "Shape of x, for backward from indices without x.", None
    )


class MaxPool(Pool):
    """See the module."""

    name = "max_pool"
    summary = "Maximum over sliding windows, with the positions of the maxima."
    config = MaxPoolConfig
    examples = (
        {"config": {"kernel": 2}, "shapes": {"x": [1, 2, 6, 6]}},
        {
            "config": {"kernel": 3, "stride": 2, "padding": 1, "return_indices": True},
            "shapes": {"x": [1, 2, 7, 7]},
        },
    )

    def inputs(self, action: Action) -> Mapping[str, bool]:
        if action == "forward":
            return {"x": True}
        return {"x": False, "indices": False, "dy": True}

    def outputs(self) -> tuple[str, ...]:
        return ("y", "indices")

    def leading(self, given: Mapping[str, tuple[int, ...]], config: object) -> str:
        """Where x is not given, dy tells the dimensions; the config's input_shape the rest."""
        shape = config.get("input_shape") if isinstance(config, Mapping) else None
        return "dy" if "x" not in given and "indices" in given and shape is not None else "x"

    def check_samples(self, config: MaxPoolConfig, samples: int) -> None:
        shape = config.input_shape
        if shape is not None and shape[0] != samples:
            loc = ("config", "input_shape", 0)
            raise fail(ShapeMismatch, loc, "samples do not fit the tensors", str(samples), shape[0])

    def plan(self, config: MaxPoolConfig, tails: Tails, dtype: str) -> Plan:
        shape = config.input_shape
        if shape is not None:
            loc = ("config", "input_shape")
            rank = 1 + len(next(iter(tails.values())))
            if len(shape) != rank:
                raise fail(ShapeMismatch, loc, "wrong rank", f"{rank} entries", list(shape))
            if min(shape[1:]) < 1:
                raise fail(ShapeMismatch, loc, "an axis is empty", "at least 1", list(shape))
            if tails.get("x", shape[1:]) != shape[1:]:
                raise fail(ShapeMismatch, loc, "not the shape of x", str(tails["x"]), list(shape))
            tails = {**tails, "x": shape[1:]}
        elif "x" not in tails:
            raise fail(MissingField, ("x",), "required", "x, or indices with input_shape", None)
        return super().plan(dataclasses.replace(config, input_shape=None), tails, dtype)

    def steps(self, config: MaxPoolConfig, pooling: Pooling) -> int:
        if config.ties == "all":
            return pooling.blocks * prod(a.kernel for a in pooling.axes if isinstance(a, Axis))
        return super().steps(config, pooling)

    def forward_outputs(self, plan: Plan) -> tuple[str, ...]:
        return ("y", "indices") if plan.config.return_indices else ("y",)

    def check(self, plan: Plan, tensors: Mapping[str, Array]) -> None:
        if "indices" in tensors:
            check_indices(tensors["indices"], prod(plan.geometry.pooling.inputs))

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        x, y, indices = _canonical(plan, given["x"], out["y"], out.get("indices"))

        def planes(n: slice, c: slice) -> None:
            block = Padded(plan, x[n, c])
            for tile in block.pooling.tiles():
                place = (n, c, *slices(tile))
                if indices is None:
                    y[place] = tile_max(block.pooling, block.x, tile)
                else:
                    y[place], indices[place] = block.argmax(tile)

        for_each_plane(plan.geometry.pooling, x.shape[0], planes)

    def backward(
        self,
        plan: Plan,
        given: Mapping[str, Array],
        rows: Sequence[int],  # noqa: ARG002
        out: Mapping[str, Array],
    ) -> None:
        if "y" in out:
            self.forward(plan, given, {"y": out["y"]})
        if "dx" not in out:
            return
        dx, dy, indices, x = _canonical(
            plan, out["dx"], given["dy"], given.get("indices"), given.get("x")
        )

        def planes(n: slice, c: slice) -> None:
            dx[n, c] = 0
            if indices is not None:
                scatter_indices(indices[n, c], dy[n, c], dx[n, c])
                return
            block = Padded(plan, x[n, c])
            for tile in block.pooling.tiles():
                upstream = dy[(n, c, *slices(tile))]
                step = spread_ties if plan.config.ties == "all" else route
                block.backward(step, upstream, tile, dx[n, c])

        for_each_plane(plan.geometry.pooling, dx.shape[0], planes)


class Padded:
    """A block of planes as its windows see it: with zeros around it where padding is zero.

    Padding of the lowest value needs no cells of its own: windows just leave it out.
    """

    def __init__(self, plan: Plan, x: Array) -> None:
        geometry: Geometry = plan.geometry
        self.pooling = geometry.pooling
        self.inside: tuple[slice, ...] | None = None
        self.x = x
        if plan.config.pad_value == "lowest":
            return
        axes = [axis for axis in self.pooling.axes if isinstance(axis, Axis)]
        pads = [(axis.low, axis.high) for axis in axes]
        self.inside = tuple(slice(a.low, a.low + a.size) for a in axes)
        self.plane = tuple(a.size for a in axes)
        self.x = np.pad(x, [(0, 0), (0, 0), *pads])
        wide = (dataclasses.replace(a, size=a.size + a.low + a.high, low=0, high=0) for a in axes)
        self.pooling = dataclasses.replace(self.pooling, axes=tuple(wide))

    def argmax(self, tile: Tile) -> tuple[Array, Array]:
        """Maxima and their positions in the unpadded plane; -1 where padding won."""
        y, indices = tile_argmax(self.pooling, self.x, tile)
        if self.inside is not None:
            positions = np.full(self.x.shape[2:], -1)
            positions[self.inside] = np.arange(prod(self.plane)).reshape(self.plane)
            indices = positions.reshape(-1)[indices]
        return y, indices

    def backward(self, step: Backward, dy: Array, tile: Tile, dx: Array) -> None:
        """Add dy to inputs that equal their window's maximum: `step` says to which of them."""
        if self.inside is None:
            step(self.pooling, self.x, dy, tile, dx)
            return
        wide = np.zeros(self.x.shape, dx.dtype)
        step(self.pooling, self.x, dy, tile, wide)
        dx += wide[within(self.inside)]


def _canonical(plan: Plan, *arrays: Array | None) -> list[Any]:
    last = plan.geometry.channels_last
    return [None if a is None else channels_first(a, last) for a in arrays]


OPERATION = MaxPool()
