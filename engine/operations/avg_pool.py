"""Average pooling.

    y[n, c, p] = (1 / d[p]) Σ_k x[n, c, p·stride + k·dilation − low]

d counts the window's members, with or without padding, or is fixed. As PyTorch's AvgPool1d to 3d and
ONNX's AveragePool; what ceil mode adds beyond the padded input counts nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.averaging import Averaging
from engine.geometry import Axis, Tile
from engine.kernels.pools.averaging import members
from engine.kernels.pools.windows import taps_between
from engine.options import LARGEST, Flag, Integer, option
from engine.plans import Plan
from engine.pool import WindowConfig

Array = NDArray[Any]

KEPT = 1024
"""Outputs along an axis up to which their counts are kept: they take longer than pooling a small map."""


@dataclass(frozen=True)
class AvgPoolConfig(WindowConfig):
    """The fields of avg_pool."""

    count_include_pad: bool = option(Flag(), "True counts padding as members of a window.", True)
    divisor_override: int | None = option(
        Integer(-LARGEST, divides=True), "Divide by this instead of the number of members.", None
    )


class AvgPool(Averaging):
    """See the module."""

    name = "avg_pool"
    summary = "Mean over sliding windows."
    config = AvgPoolConfig
    examples = (
        {"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4, 4]}},
        {
            "config": {"kernel": 3, "stride": 1, "padding": 1, "count_include_pad": False},
            "shapes": {"x": [2, 1, 6]},
        },
    )

    def divisor(self, plan: Plan, tile: Tile) -> Array:
        """What the sums of a tile are divided by, broadcast to (*T); 1 where there is nothing to sum."""
        if plan.config.divisor_override is not None:
            return np.array(plan.config.divisor_override)
        counts = []
        for axis, (lo, hi) in zip(plan.geometry.pooling.fixed_axes, tile, strict=True):
            along = _kept if hi - lo <= KEPT else _along
            counts.append(along(axis, lo, hi, plan.config.count_include_pad))
        return np.maximum(members(counts), 1)


def _along(axis: Axis, lo: int, hi: int, padded: bool) -> NDArray[np.int64]:
    """The members of each output in [lo, hi)."""
    first, end = (-axis.low, axis.size + axis.high) if padded else (0, axis.size)
    return taps_between(axis, lo, hi, first, end)


@lru_cache(maxsize=1024)
def _kept(axis: Axis, lo: int, hi: int, padded: bool) -> NDArray[np.int64]:
    counts = _along(axis, lo, hi, padded)
    counts.flags.writeable = False
    return counts


OPERATION = AvgPool()
