"""How many CPUs this process may use: its affinity, and the quota of its control group.

A container's quota is not visible in the number of CPUs: with ``--cpus 2`` on a machine of 64 a
library sees 64 and starts as many threads, which then share the time of two.
"""

from __future__ import annotations

import math
from pathlib import Path

from engine.threads import MOST_THREADS, usable_cpus


def available_cpus(root: Path = Path("/")) -> int:
    """The CPUs whose time this process can have in full; at least 1.

    Args:
        root: where the file systems ``proc`` and ``sys`` are mounted.
    """
    quotas = [*_quotas_v2(root), *_quotas_v1(root)]
    return max(1, min([usable_cpus(), *(math.floor(quota) for quota in quotas)]))


def threads_of_a_task() -> int:
    """Threads that one task may have, those of workers without work included."""
    return min(available_cpus(), MOST_THREADS)


def threads_per_worker(workers: int, cpus: int) -> int:
    """Threads for each of `workers` workers, such that they do not fight over `cpus` CPUs."""
    return max(1, cpus // max(1, workers))


def _quotas_v2(root: Path) -> list[float]:
    """CPUs allowed by ``cpu.max`` (kernel documentation, cgroup-v2.rst) here and further up."""
    folder = root / "sys/fs/cgroup"
    quotas = []
    for group in _ancestors(folder, _own_group(root, "")):
        match _words(group / "cpu.max"):
            case [quota, period] if quota != "max":
                quotas.append(int(quota) / int(period))
    return quotas


def _quotas_v1(root: Path) -> list[float]:
    """CPUs allowed by the controller ``cpu`` of version 1, where a quota of -1 is none."""
    folder = root / "sys/fs/cgroup/cpu"
    quotas = []
    for group in _ancestors(folder, _own_group(root, "cpu")):
        match _words(group / "cpu.cfs_quota_us"), _words(group / "cpu.cfs_period_us"):
            case [[quota], [period]] if int(quota) > 0:
                quotas.append(int(quota) / int(period))
    return quotas


def _own_group(root: Path, controller: str) -> str:
    """This process's group under a controller, from lines as ``4:cpu,cpuacct:/group``."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controller in controllers.split(","):
            return group.strip("/")
    return ""


def _ancestors(folder: Path, group: str) -> list[Path]:
    """A group's folder and those above it; a quota on any of them counts."""
    path = folder / group
    return [path, *(parent for parent in path.parents if parent.is_relative_to(folder))]


def _words(path: Path) -> list[str]:
    return _text(path).split()


def _text(path: Path) -> str:
    """A file's text; empty where there is no such file, as on other systems."""
    try:
        return path.read_text()
    except OSError:
        return ""
