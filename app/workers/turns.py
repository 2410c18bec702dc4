"""Who computes first where processors are short: the event loop and small work, then what takes long.

Two things say so to Linux: a niceness of what takes long, and a short slice for what has to come soon.
From version 6.12 on a thread that wakes with a shorter slice than the one that runs takes its place at
once (sched_setattr(2), `sched_runtime`); it has no more of the time in all. Elsewhere nothing is said.

It is a matter of speed only: where a sandbox does not let us say so, or who is meant has ended, all goes
on as it is.

What takes long can also be kept off one processor for a while. Unlike niceness, that can be taken back
without a privilege.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

NICE = 10
"""By how much what takes long yields: a tenth of the weight of others, so that these come first. With 5
small work waits twice as long; a container's niceness counts among its own processes only."""

SLICE_NS = 100_000
"""The shortest slice that the kernel grants."""

_LINUX = sys.platform == "linux"
_SET_ATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}.get(platform.machine())
"""The system call's number; the C library has no function for it."""

_ATTR = struct.Struct("=IIQiIQQQ")
"""size, policy, flags, nice, priority, runtime, deadline, period"""

_RESET_ON_FORK = 1


def come_last(pid: int) -> None:
    """Have a process or thread yield to others; 0 is the one that calls."""
    with suppress(OSError):
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, pid, ours + NICE)


def come_first(pid: int = 0) -> bool:
    """Give a process or thread, by default this one, a short slice; what it starts has none.

    Returns:
        Whether the system knows of such a thing.
    """
    if not _LINUX or _SET_ATTR is None:
        return False
    with suppress(OSError):
        if os.sched_getscheduler(pid) == os.SCHED_OTHER:
            nice = os.getpriority(os.PRIO_PROCESS, pid)
            given = _ATTR.pack(_ATTR.size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0)
            return ctypes.CDLL(None).syscall(_SET_ATTR, pid, given, 0) == 0
    return False


def leave_one(pid: int) -> frozenset[int]:
    """Keep all threads of a process off one of its processors, if it has several.

    Returns:
        The processors it had, to give back later; none where all is as it was.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            cpus = os.sched_getaffinity(pid)
            if len(cpus) > 1 and _confine(pid, cpus - {min(cpus)}):
                return frozenset(cpus)
    return frozenset()


def give_back(pid: int, cpus: frozenset[int]) -> None:
    """Let a process have the processors that it had, unless somebody gave it others since."""
    if sys.platform == "linux":
        with suppress(OSError):
            if os.sched_getaffinity(pid) == cpus - {min(cpus)}:
                _confine(pid, cpus)


def _confine(pid: int, cpus: Set[int]) -> bool:
    """The first thread comes first: what it starts from then on has the same processors."""
    if sys.platform != "linux":
        return False
    try:
        os.sched_setaffinity(pid, cpus)
    except OSError:
        return False
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), cpus)
    return True
