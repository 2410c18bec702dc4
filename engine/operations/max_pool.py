"""Max pooling with indices, ties, ceil mode and dilation.

    y[n, c, p] = max over k of x[n, c, p·stride + k·dilation − low]

As PyTorch's MaxPool1d to 3d. NaN wins over every number. The gradient goes to the first maximum of a
window in row-major order, or to all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from numpy.typing import NDArray

from engine.errors import InvalidValue, MissingField, ShapeMismatch, fail
from engine.indices import check_indices
from engine.kernels.pools.maxima import (
    write_contested,
    write_maxima,
    write_routed,
    write_scattered,
)
from engine.kernels.pools.pooling import Pooling
from engine.layouts import channels_first
from engine.operation import Tails
from engine.options import Choice, Flag, Shape, option
from engine.plans import Action, Plan
from engine.pool import Pool, WindowConfig

Array = NDArray[Any]


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
        {"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4, 4]}},
        {
            "config": {"kernel": 3, "stride": 2, "padding": 1, "return_indices": True},
            "shapes": {"x": [1, 1, 5, 5]},
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
        if "x" in given or "indices" not in given:
            return "x"
        if shape is None:
            loc = ("config", "input_shape")
            msg = "required where indices come without x"
            raise fail(MissingField, loc, msg, "the shape of x", None)
        return "dy"

    def check_samples(self, config: MaxPoolConfig, samples: int) -> None:
        shape = config.input_shape
        if shape is not None and shape[0] != samples:
            loc = ("config", "input_shape", 0)
            raise fail(ShapeMismatch, loc, "samples do not fit the tensors", str(samples), shape[0])

    def plan(self, config: MaxPoolConfig, tails: Tails, dtype: str) -> Plan:
        shape, given = config.input_shape, tails
        if shape is not None:
            loc = ("config", "input_shape")
            rank = 1 + len(next(iter(tails.values())))
            if len(shape) != rank:
                raise fail(ShapeMismatch, loc, "wrong rank", f"{rank} entries", list(shape))
            if min(shape[1:]) < 1:
                raise fail(ShapeMismatch, loc, "an axis is empty", "at least 1", list(shape))
            if tails.get("x", shape[1:]) != shape[1:]:
                expected = str([shape[0], *tails["x"]])
                raise fail(ShapeMismatch, loc, "not the shape of x", expected, list(shape))
            tails = {"x": shape[1:], **tails}
        if config.ties == "all" and "x" not in given:
            loc = ("config", "ties")
            msg = "indices name one maximum of each window; the others take x"
            raise fail(InvalidValue, loc, msg, "first, or x", config.ties)
        return super().plan(dataclasses.replace(config, input_shape=None), tails, dtype)

    def steps(self, config: MaxPoolConfig, pooling: Pooling) -> int:
        if config.ties == "all" or pooling.tapped_axes:
            return pooling.block_count * prod(axis.kernel for axis in pooling.fixed_axes)
        return super().steps(config, pooling)

    def forward_outputs(self, plan: Plan) -> tuple[str, ...]:
        return ("y", "indices") if plan.config.return_indices else ("y",)

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        return True

    def check(self, plan: Plan, tensors: Mapping[str, Array]) -> None:
        if "indices" in tensors:
            check_indices(tensors["indices"], prod(plan.geometry.pooling.inputs))

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        x, y, indices = _canonical(plan, given["x"], out["y"], out.get("indices"))
        positions, zeros = plan.config.return_indices, plan.config.pad_value == "zero"
        write_maxima(plan.geometry.pooling, x, y, indices, positions=positions, zeros=zeros)

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        dx, dy, indices, x = _canonical(plan, dx, given["dy"], given.get("indices"), given.get("x"))
        pooling: Pooling = plan.geometry.pooling
        zeros, ties = plan.config.pad_value == "zero", plan.config.ties
        if indices is not None and ties == "first":
            write_scattered(pooling, indices, dy, dx)
        elif ties == "first" and not zeros:
            write_routed(pooling, x, dy, dx)
        else:
            write_contested(pooling, x, dy, dx, zeros=zeros, shared=ties == "all")


def _canonical(plan: Plan, *arrays: Array | None) -> list[Any]:
    last = plan.geometry.channels_last
    return [None if a is None else channels_first(a, last) for a in arrays]


OPERATION = MaxPool()
