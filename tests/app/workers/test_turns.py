"""Who comes first is told to the system, and to nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

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
    found: list[int] = []

    def run() -> None:
        turns.come_last(threading.get_native_id())
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    ours = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [min(ours + turns.NICE, 19)]
