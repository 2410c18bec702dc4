"""Adaptive average pooling: the mean over windows [floor(i·n/m), ceil((i+1)·n/m)).

As PyTorch's AdaptiveAvgPool1d to 3d; `output_size` 1 is global average pooling.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from engine.averaging import Averaging
from engine.geometry import Tile
from engine.kernels.pools.averaging import members
from engine.kernels.pools.windows import bounds
from engine.plans import Plan
from engine.pool import AdaptiveConfig, adaptive_windows

Array = NDArray[Any]


class AdaptiveAvgPool(Averaging):
    """See the module."""

    name = "adaptive_avg_pool"
    summary = "Mean over windows chosen so that the output has a given size."
    config = AdaptiveConfig
    examples = ({"config": {"output_size": 1}, "shapes": {"x": [1, 2, 4, 4]}},)

    windows = staticmethod(adaptive_windows)

    def divisor(self, plan: Plan, tile: Tile) -> Array:
        """Members of each window of a tile, broadcast to (*T)."""
        axes = zip(plan.geometry.pooling.axes, tile, strict=True)
        edges = (bounds(axis, lo, hi) for axis, (lo, hi) in axes)
        return members(stops - starts for starts, stops in edges)


OPERATION = AdaptiveAvgPool()
