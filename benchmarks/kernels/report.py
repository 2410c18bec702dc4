"""All that one run found, as plain values for JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from benchmarks.kernels.contention import QUIET_BELOW
from benchmarks.kernels.disturbance import Disturbance
from benchmarks.kernels.measure import Row
from benchmarks.kernels.planning import Planning
from benchmarks.kernels.scaling import Growth
from benchmarks.kernels.speedup import Speedup
from benchmarks.kernels.timing import Spread


@dataclass
class Report:
    """One run.

    Attributes:
        machine: what it ran on, and with what.
        limits: sgemm in FLOP/s, copy in bytes read and written per second.
        complete: whether every case was measured.
        hurried: measurements that had a single round, because the time was up.
        ceiling: how many times as fast products that share nothing are on a thread each.
        others: processors that other programs used, on average over the run; None if unknown.
    """

    machine: dict[str, Any]
    limits: dict[str, Spread]
    complete: bool
    rows: list[Row] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    planning: Planning | None = None
    others: float | None = None
    hurried: int = 0
    ceiling: Spread | None = None
    speedups: list[Speedup] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Whether nobody else is known to have used the machine, so that ratios say something."""
        return self.others is None or self.others <= QUIET_BELOW

    def plain(self) -> dict[str, Any]:
        """Maps, lists, numbers and text; what the rows conclude for themselves included."""
        found = {**dataclasses.asdict(self), "quiet": self.quiet}
        for row, entry in zip(self.rows, found["rows"], strict=True):
            entry["limit"] = "memory" if row.memory_bound else "compute"
            entry["of_limit"] = row.of_limit
        return found
