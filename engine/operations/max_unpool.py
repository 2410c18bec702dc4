"""Max unpooling: each value goes to the position its index names; everything else is 0.

As PyTorch's MaxUnpool1d to 3d. Where positions repeat, the last in row-major order is written, and
backward reads the gradient at each. An index of -1 (an empty window of max_pool) goes nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES, SCRATCH_BYTES, Arena
from engine.geometry import even, ranges
from engine.indices import check_indices
from engine.kernels.pools.placing import flat, in_order, linear, out_of_order
from engine.kernels.pools.pooling import VISITING
from engine.layouts import channels_first, read_layout, sample_tail, split_tail
from engine.operation import Parameterless, Tails
from engine.options import PerAxis, option
from engine.plans import Plan
from engine.pool import LayoutConfig
from engine.threads import check_stop, for_each

Array = NDArray[Any]

BLOCK = 1 << 17
"""Indices looked at together. Beside the scratch, which has their positions, those of them that are not -1
and their values take up to 17 bytes each."""

OUTPUTS = 1 << 20
"""Outputs of planes that are taken together, if not of one: threads have something to share."""


@dataclass(frozen=True)
class MaxUnpoolConfig(LayoutConfig):
    """The fields of max_unpool."""

    output_size: tuple[int, ...] = option(PerAxis(1), "Spatial size of y.")


@dataclass(frozen=True)
class Geometry:
    """A sample's channels and the indices of each, the plane that these point into, and the layout."""

    channels: int
    positions: int
    plane: int
    channels_last: bool


class MaxUnpool(Parameterless):
    """See the module."""

    name = "max_unpool"
    summary = "Puts pooled values back where their maxima stood; zeros elsewhere."
    config = MaxUnpoolConfig
    forward_inputs: ClassVar[Mapping[str, bool]] = {"x": True, "indices": True}
    backward_inputs: ClassVar[Mapping[str, bool]] = {"x": False, "indices": True, "dy": True}
    examples = (
        {
            "config": {"output_size": [4, 4]},
            "shapes": {"x": [1, 2, 2, 2], "indices": [1, 2, 2, 2]},
        },
    )

    def leading(self, given: Mapping[str, tuple[int, ...]], config: object) -> str:  # noqa: ARG002
        return "x" if "x" in given else "indices"

    def plan(self, config: MaxUnpoolConfig, tails: Tails, dtype: str) -> Plan:
        x = tails.get("x", tails["indices"])
        last = read_layout(config.layout, len(x) - 1)
        channels, sizes = split_tail(x, last)
        y = sample_tail(channels, config.output_size, last)
        count = prod(x)
        return Plan(
            operation=self.name,
            config=config,
            dtype=dtype,
            tails=(("x", x), ("indices", x), ("dx", x), ("y", y), ("dy", y)),
            padding=((0, 0),) * len(sizes),
            receptive_field=(1,) * len(sizes),
            flops=(count, count),
            steps=1,
            geometry=Geometry(channels, prod(sizes), prod(config.output_size), last),
            scratch_bytes=SCRATCH_BYTES + 2 * PART_BYTES,
        )

    def check(self, plan: Plan, tensors: Mapping[str, Array]) -> None:
        check_indices(tensors["indices"], plan.geometry.plane)

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        x, indices, y = _flat_planes(plan, given["x"], given["indices"], out["y"])

        def planes(n: slice, c: slice) -> None:
            target = y[n, c]
            target[...] = 0
            # One after another: where positions repeat, the last is to stay.
            for part in _parts(indices[n, c]):
                check_stop()
                where, kept = linear(indices[n, c, part], target, Arena())
                values = in_order(x[n, c, part], target)
                flat(target)[where] = values if kept is None else values[kept]

        for_each(planes, _planes(plan, len(x)), VISITING * y.size)

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        indices, dy, dx = _flat_planes(plan, given["indices"], given["dy"], dx)

        def planes(n: slice, c: slice) -> None:
            source = dy[n, c]
            for part in _parts(indices[n, c]):
                check_stop()
                own, arena = indices[n, c, part], Arena()
                where, kept = linear(own, source, arena)
                made = arena.take((own.size,), dx.dtype)
                if kept is None:
                    # `check` left nothing to wrap; to raise an error, it would write to a copy first.
                    np.take(flat(source), where, out=made, mode="wrap")
                else:
                    made.fill(0)
                    made[kept] = flat(source)[where]
                dx[n, c, part] = out_of_order(made, own.shape, source)

        for_each(planes, _planes(plan, len(dx)), VISITING * dy.size)


def _flat_planes(plan: Plan, *arrays: Array) -> list[Array]:
    """Views (N, C, positions) of arrays."""
    views = (channels_first(a, plan.geometry.channels_last) for a in arrays)
    return [a.reshape(*a.shape[:2], -1, copy=False) for a in views]


def _planes(plan: Plan, samples: int) -> Iterator[tuple[slice, slice]]:
    """Samples and channels to take together, which share nothing with others."""
    g: Geometry = plan.geometry
    most = max(1, min(BLOCK // g.positions, OUTPUTS // g.plane))
    # Channels that lie side by side are cut only where one position has more than a block of them.
    c = even(g.channels, BLOCK if g.channels_last else most)
    n = max(1, most // c) if c == g.channels else 1
    cuts = product(ranges(samples, n), ranges(g.channels, c))
    return ((slice(*own), slice(*channels)) for own, channels in cuts)


def _parts(indices: Array) -> Iterator[slice]:
    """The positions of planes (n, c, positions) in blocks, in order."""
    n, c, positions = indices.shape
    return (slice(*part) for part in ranges(positions, even(positions, BLOCK // (n * c))))


OPERATION = MaxUnpool()
