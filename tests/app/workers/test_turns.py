"""Who comes first is told to the system, and to nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from app.workers import turns
from engine.threads import usable_cpus

READ = """
import ctypes, os, struct, sys
from app.workers import turns
from engine.threads import usable_cpus
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

THREADS = """
import sys, threading
def live():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
live()
for _ in sys.stdin:
    live()
    print(flush=True)
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
    assert int(nice) == min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)
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
    assert not turns.leave_one(ended.pid)
    turns.give_back(ended.pid, frozenset({0}))


@contextmanager
def many_threads() -> Iterator[tuple[int, Callable[[], list[set[int]]]]]:
    """A process's id, and what starts one more thread in it and tells the processors of all."""
    command = [sys.executable, "-c", THREADS]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, said = process.stdin, process.stdout

        def one_more() -> list[set[int]]:
            print(file=given, flush=True)
            said.readline()
            threads = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
            return [os.sched_getaffinity(thread) for thread in threads]

        yield process.pid, one_more
        given.close()


@linux
@pytest.mark.skipif(usable_cpus() < 2, reason="there is none to leave")
def test_all_threads_of_a_process_leave_one_processor_until_it_is_given_back() -> None:
    ours = os.sched_getaffinity(0)
    with many_threads() as (pid, one_more):
        assert one_more() == [ours] * 3
        had = turns.leave_one(pid)
        assert had == ours
        assert one_more() == [ours - {min(ours)}] * 4
        turns.give_back(pid, had)
        assert one_more() == [ours] * 5
    assert os.sched_getaffinity(0) == ours


@linux
@pytest.mark.skipif(usable_cpus() < 2, reason="there is none to leave")
def test_what_somebody_else_gave_it_meanwhile_it_keeps() -> None:
    one = {min(os.sched_getaffinity(0))}
    with many_threads() as (pid, one_more):
        had = turns.leave_one(pid)
        os.sched_setaffinity(pid, one)
        turns.give_back(pid, had)
        assert os.sched_getaffinity(pid) == one
        one_more()


@linux
@pytest.mark.skipif(usable_cpus() < 2, reason="there is none to leave")
def test_it_is_given_back_though_no_other_threads_can_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = os.sched_getaffinity(0)
    with many_threads() as (pid, one_more):
        with monkeypatch.context() as patch:
            patch.setattr(turns, "Path", lambda _: Path("/nowhere"))
            had = turns.leave_one(pid)
            assert os.sched_getaffinity(pid) == ours - {min(ours)}
        turns.give_back(pid, had)
        assert one_more() == [ours] * 3


@linux
def test_who_has_one_processor_keeps_it() -> None:
    one = {min(os.sched_getaffinity(0))}
    with many_threads() as (pid, one_more):
        os.sched_setaffinity(pid, one)
        assert turns.leave_one(pid) == frozenset()
        assert os.sched_getaffinity(pid) == one
        one_more()


@linux
@pytest.mark.parametrize("call", ["sched_getaffinity", "sched_setaffinity"])
def test_where_a_sandbox_forbids_it_none_is_left(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, call, forbidden)
    assert turns.leave_one(os.getpid()) == frozenset()
