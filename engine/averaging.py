"""What both average pools are: sums over windows, divided by a count that each knows in its own way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from engine.geometry import Tile
from engine.kernels.pools.averaging import write_averages, write_averages_adjoint
from engine.layouts import channels_first
from engine.plans import Plan
from engine.pool import Pool

Array = NDArray[Any]


class Averaging(Pool):
    """A pool whose outputs are sums over windows, each divided by a number that no input tells."""

    @abstractmethod
    def divisor(self, plan: Plan, tile: Tile) -> Array:
        """What the sums of a tile are divided by, broadcast to (*T)."""

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        return True

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        x, y = (channels_first(a, plan.geometry.channels_last) for a in (given["x"], out["y"]))
        write_averages(plan.geometry.pooling, partial(self.divisor, plan), x, y)

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        dy, dx = (channels_first(a, plan.geometry.channels_last) for a in (given["dy"], dx))
        write_averages_adjoint(plan.geometry.pooling, partial(self.divisor, plan), dy, dx)
