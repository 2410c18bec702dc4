"""How often something took how long: histograms that cost little, a request that counts and whoever asks.

The client library takes microseconds to count a value and ten more to write a line, of which there are
thousands: the event loop would stand still while the metrics are asked for.
"""

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

    def at_most(self) -> Iterator[int]:
        """How many values were no greater than each bound, and than infinity at last."""
        return accumulate(self._counts)


class Histogram:
    """A metric with a tally for each combination of labels.

    Args:
        name: of the metric. about: a line on it.
        labels: their names, in alphabetical order. Values are to need no escapes.
        bounds: as those of `Tally`.
    """

    def __init__(
        self, name: str, about: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> None:
        self._name, self._about, self._labels = name, about, labels
        self._bounds = bounds
        self._shown = [*map(str, map(float, bounds)), "+Inf"]
        self._tallies: dict[tuple[str, ...], Tally] = {}

    def add(self, labels: tuple[str, ...], value: float) -> None:
        """Count one value, whose labels have these values."""
        tally = self._tallies.get(labels)
        if tally is None:
            tally = self._tallies[labels] = Tally(self._bounds)
        tally.add(value)

    def text(self) -> str:
        """The metric in Prometheus' text format."""
        name = self._name
        lines = [f"# HELP {name} {self._about}", f"# TYPE {name} histogram"]
        for values, tally in self._tallies.items():
            pairs = zip(self._labels, values, strict=True)
            where = ",".join(f'{label}="{value}"' for label, value in pairs)
            counts = list(tally.at_most())
            lines += [
                f'{name}_bucket{{{where},le="{bound}"}} {count}'
                for bound, count in zip(self._shown, counts, strict=True)
            ]
            lines.append(f"{name}_count{{{where}}} {counts[-1]}")
            lines.append(f"{name}_sum{{{where}}} {tally.total}")
        return "\n".join((*lines, ""))
