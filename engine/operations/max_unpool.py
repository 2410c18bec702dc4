"""Max unpooling: each value goes to the position its index names; everything else is 0.

As PyTorch's MaxUnpool1d to 3d. Where positions repeat, the last in row-major order is written, and
backward reads the gradient at each. An index of -1 (an empty window of max_pool) goes nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from numpy.typing import NDArray

from engine.geometry import ranges
from engine.indices import check_indices
from engine.kernels.placing import flat, linear
from engine.kernels.pooling import BLOCK, VISITING
from engine.layouts import channels_first, read_layout, sample_tail, split_tail
from engine.operation import Operation, Tails
from engine.options import PerAxis, option
from engine.plans import Plan
from engine.pool import LayoutConfig
from engine.threads import Arena, for_each

Array = NDArray[Any]


@dataclass(frozen=True)
class MaxUnpoolConfig(LayoutConfig):
    """The fields of max_unpool."""

    output_size: tuple[int, ...] = option(PerAxis(1), "Spatial size of y.")


@dataclass(frozen=True)
class Geometry:
    """The plane that indices point into, and where the channels are."""

    plane: int
    channels_last: bool


class MaxUnpool(Operation):
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
            geometry=Geometry(prod(config.output_size), last),
        )

    def check(self, plan: Plan, tensors: Mapping[str, Array]) -> None:
        check_indices(tensors["indices"], plan.geometry.plane)

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        last = plan.geometry.channels_last
        x, indices, y = (channels_first(a, last) for a in (given["x"], given["indices"], out["y"]))

        def samples(lo: int, hi: int) -> None:
            y[lo:hi] = 0
            where, kept = linear(indices[lo:hi], y[lo:hi], Arena())
            flat(y[lo:hi])[where] = x[lo:hi] if kept is None else x[lo:hi][kept]

        for_each(samples, ranges(x.shape[0], _step(plan)), VISITING * y.size)

    def backward(
        self,
        plan: Plan,
        given: Mapping[str, Array],
        rows: Sequence[int],  # noqa: ARG002
        out: Mapping[str, Array],
    ) -> None:
        if "y" in out:
            self.forward(plan, given, out)
        if "dx" not in out:
            return
        last = plan.geometry.channels_last
        indices, dy, dx = (
            channels_first(a, last) for a in (given["indices"], given["dy"], out["dx"])
        )

        def samples(lo: int, hi: int) -> None:
            where, kept = linear(indices[lo:hi], dy[lo:hi], Arena())
            if kept is None:
                dx[lo:hi] = flat(dy[lo:hi])[where]
            else:
                dx[lo:hi] = 0
                dx[lo:hi][kept] = flat(dy[lo:hi])[where]

        for_each(samples, ranges(dx.shape[0], _step(plan)), VISITING * dy.size)


def _step(plan: Plan) -> int:
    """Samples at a time."""
    return max(1, BLOCK // max(prod(plan.tail["y"]), prod(plan.tail["x"])))


OPERATION = MaxUnpool()
