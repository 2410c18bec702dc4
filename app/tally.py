"""How often something took how long: a histogram that costs a request next to nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate


class Tally:
    """Counts of values by size, and their sum.

    Args:
        bounds: greatest values of each class but the last, which takes what is greater; ascending.
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def at_most(self) -> Iterator[tuple[float, int]]:
        """How many values were no greater than each bound, and than infinity at last."""
        return zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True)
