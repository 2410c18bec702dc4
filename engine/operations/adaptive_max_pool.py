"""Adaptive max pooling: the maximum over windows [floor(i·n/m), ceil((i+1)·n/m)).

As PyTorch's AdaptiveMaxPool1d to 3d; `output_size` 1 is global max pooling. The gradient goes to the
first maximum in row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from engine.geometry import Adaptive
from engine.kernels.maxima import tile_argmax, tile_max
from engine.kernels.placing import scatter_indices
from engine.kernels.pooling import for_each_plane, slices
from engine.layouts import channels_first
from engine.options import Flag, option
from engine.plans import Plan
from engine.pool import AdaptiveConfig, Pool, adaptive_windows
from engine.threads import check_stop

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
    examples = ({"config": {"output_size": [2, 3]}, "shapes": {"x": [1, 2, 7, 7]}},)

    def windows(
        self,
        config: AdaptiveConfig,
        sizes: Sequence[int],
        channels_last: bool,  # noqa: ARG002
    ) -> tuple[Adaptive, ...]:
        return adaptive_windows(config, sizes)

    def outputs(self) -> tuple[str, ...]:
        return ("y", "indices")

    def forward_outputs(self, plan: Plan) -> tuple[str, ...]:
        return ("y", "indices") if plan.config.return_indices else ("y",)

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        pooling, last = plan.geometry.pooling, plan.geometry.channels_last
        x, y = channels_first(given["x"], last), channels_first(out["y"], last)
        indices = channels_first(out["indices"], last) if "indices" in out else None
        # Finds other zeros of both signs than maxima alone: y is the same, indices wanted or not.
        positions = plan.config.return_indices
        tiles = list(pooling.tiles(copied=positions))

        def planes(n: slice, c: slice) -> None:
            for tile in tiles:
                check_stop()
                place = (n, c, *slices(tile))
                if not positions:
                    tile_max(pooling, x[n, c], tile, y[place])
                    continue
                y[place], found = tile_argmax(pooling, x[n, c], tile)
                if indices is not None:
                    indices[place] = found

        for_each_plane(pooling, x.shape[0], planes, copied=positions)

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
        pooling, last = plan.geometry.pooling, plan.geometry.channels_last
        x, dy, dx = (channels_first(a, last) for a in (given["x"], given["dy"], out["dx"]))
        tiles = list(pooling.tiles(copied=True))

        def planes(n: slice, c: slice) -> None:
            dx[n, c] = 0
            for tile in tiles:
                check_stop()
                _, indices = tile_argmax(pooling, x[n, c], tile)
                scatter_indices(indices, dy[(n, c, *slices(tile))], dx[n, c])

        for_each_plane(pooling, x.shape[0], planes, copied=True)


OPERATION = AdaptiveMaxPool()
