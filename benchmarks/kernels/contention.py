"""How much of the machine others use while we measure.

With fewer processors than threads, peers do not suffer alike: threads that wait for each other at
barriers, as OpenMP's do, can become a thousand times slower while a queue of blocks loses its share
only. Ratios from such a run flatter one side, so no target is judged by it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")

QUIET_BELOW = 0.1
"""Processors used by others, on average, up to which a run counts as undisturbed."""


@dataclass(frozen=True)
class Moment:
    """Seconds so far: on the clock, of this process, and of every process of the machine."""

    clock: float
    own: float
    all: float


def now() -> Moment | None:
    """This moment, or None where the system does not tell."""
    if not STAT.exists():
        return None
    ticks = busy(STAT.read_text(encoding="ascii"))
    return Moment(time.perf_counter(), time.process_time(), ticks / os.sysconf("SC_CLK_TCK"))


def busy(stat: str) -> int:
    """Clock ticks that all processors together did not idle, time stolen by the host included.

    The fields are those of proc(5): user, nice, system, idle, iowait, irq, softirq, steal, and then
    two that user and nice contain already.
    """
    fields = [int(field) for field in stat.split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4]


def others(since: Moment | None, until: Moment | None) -> float | None:
    """Processors that others used between two moments, on average."""
    if since is None or until is None or until.clock <= since.clock:
        return None
    foreign = (until.all - since.all) - (until.own - since.own)
    return max(0.0, foreign / (until.clock - since.clock))
