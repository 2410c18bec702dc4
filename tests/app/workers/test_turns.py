"""Who comes first is told to the system, and to nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from app.workers import turns

READ = """
import ctypes, os, struct, sys
from app.workers import turns
get, read = turns._SET_ATTR + 1, ctypes.create_string_buffer(48)
def slice_ns(pid=0):
    assert ctypes.CDLL(None).syscall(get, pid, read, 48, 0) == 0
    return struct.unpack("=IIQiIQQQ", read.raw)[5]
before = slice_ns()
os.nice(3)
known = turns.come_first()
child = os.fork()
if child == 0:
    os._exit(slice_ns() != before)
started_with_ours = os.waitpid(child, 0)[1] != 0
print(known, before, slice_ns(), os.nice(0), started_with_ours)
"""

T = TypeVar("T")


def aside(run: Callable[[], T]) -> T:
    """Run on a thread of its own, since what was said of one is not taken back."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is said")


@linux
def test_a_short_slice_is_the_threads_own_and_leaves_its_niceness_alone() -> None:
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
    known, before, after, nice, inherited = done.stdout.split()
    assert nice == "3"
    assert inherited == "False"
    # Kernels before 6.12 take the call and have no such slice.
    assert known == "True"
    assert int(after) in (turns.SLICE_NS, int(before))


@linux
def test_where_another_policy_was_chosen_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_BATCH)
    assert not turns.come_first()


@linux
def test_what_takes_long_yields_to_others() -> None:
    def run() -> int:
        turns.come_last(threading.get_native_id())
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert aside(run) == min(ours + turns.NICE, 19)


@linux
@pytest.mark.parametrize("call", ["getpriority", "setpriority", "sched_getscheduler"])
def test_what_a_sandbox_forbids_is_left(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def forbidden(*_: int) -> int:
        refused.append(call)
        raise PermissionError(1, "Operation not permitted")

    def run() -> bool:
        turns.come_last(threading.get_native_id())
        return turns.come_first()

    monkeypatch.setattr(os, call, forbidden)
    assert aside(run) == (call == "setpriority")
    assert refused


@linux
def test_who_has_ended_is_left() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    turns.come_last(ended.pid)
    assert not turns.come_first(ended.pid)
