"""How many CPUs this process may use: its affinity, and the quota of its control group.

A container's quota is not visible in the number of CPUs: with ``--cpus 2`` on a machine of 64 a
library sees 64 and starts as many threads, which then share the time of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from app.workers.cgroups import ROOT, controlled, unified
from engine.threads import MOST_THREADS, usable_cpus


def available_cpus(root: Path = ROOT) -> int:
    """The CPUs whose time this process can have in full; at least 1.

    Args:
        root: see `cgroups.ROOT`.
    """
    return max(1, min([usable_cpus(), *map(math.floor, _quotas(root))]))


def threads_of_a_task() -> int:
    """Threads that one task may have, those of workers without work included."""
    return min(available_cpus(), MOST_THREADS)


def threads_per_worker(workers: int, cpus: int) -> int:
    """Threads for each of `workers` workers, such that they do not fight over `cpus` CPUs."""
    return max(1, cpus // max(1, workers))


def _quotas(root: Path) -> Iterator[float]:
    """CPUs allowed by control groups, of which some allow all."""
    files = (
        *unified(root, "cpu.max"),
        *controlled(root, "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    )
    # Where all are allowed, the quota is "max" in version 2 and -1 in version 1.
    for words in files:
        match words:
            case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
                yield int(quota) / int(period)
