"""Adaptive max pooling: the maximum over windows [floor(i·n/m), ceil((i+1)·n/m)).

As PyTorch's AdaptiveMaxPool1d to 3d; `output_size` 1 is global max pooling. The gradient goes to the
first maximum in row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from engine.kernels.pools.maxima import write_maxima, write_routed
from engine.layouts import channels_first
from engine.options import Flag, option
from engine.plans import Plan
from engine.pool import AdaptiveConfig, Pool, adaptive_windows

Array = NDArray[Any]


@dataclass(frozen=True)
class AdaptiveMaxPoolConfig(AdaptiveConfig):
    """The fields of adaptive_max_pool."""

    return_indices: bool = option(Flag(), "True gives the positions of the maxima too.", False)


class AdaptiveMaxPool(Pool):
    """See the module."""

    name = "adaptive_max_pool"
    summary = "Maximum over windows chosen so that the output has a given size."
    config = AdaptiveMaxPoolConfig
    examples = ({"config": {"output_size": [2, 3]}, "shapes": {"x": [1, 1, 5, 5]}},)

    windows = staticmethod(adaptive_windows)

    def outputs(self) -> tuple[str, ...]:
        return ("y", "indices")

    def forward_outputs(self, plan: Plan) -> tuple[str, ...]:
        return ("y", "indices") if plan.config.return_indices else ("y",)

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        return True

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        last = plan.geometry.channels_last
        x, y = channels_first(given["x"], last), channels_first(out["y"], last)
        indices = channels_first(out["indices"], last) if "indices" in out else None
        positions = plan.config.return_indices
        write_maxima(plan.geometry.pooling, x, y, indices, positions=positions)

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        last = plan.geometry.channels_last
        x, dy, dx = (channels_first(a, last) for a in (given["x"], given["dy"], dx))
        write_routed(plan.geometry.pooling, x, dy, dx)


OPERATION = AdaptiveMaxPool()
