"""Threads over blocks: each block once, failures heard, stops obeyed, BLAS put back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import blas, threads
from engine.errors import Stopped
from engine.wakefulness import LINGER_S, Wakefulness
from tests.starving import granting

MUCH = threads.SMALL_FLOPS


pytestmark = pytest.mark.usefixtures("two_threads")


def test_blocks_of_too_little_are_not_shared() -> None:
    for blocks, block_flops, used in ((10, 0, 2), (10, MUCH // 10, 2), (10, MUCH // 10 + 1, 1)):
        met = threading.Barrier(used)
        seen: set[int] = set()

        def block(number: int, met: threading.Barrier = met, seen: set[int] = seen) -> None:
            # The first two blocks wait for each other where two threads are to have them; else a helper
            # that ought not to be there has time to come.
            if number < met.parties:
                met.wait(30.0)
            if met.parties == 1:
                time.sleep(0.005)
            seen.add(threading.get_ident())

        threads.for_each(block, [(i,) for i in range(blocks)], MUCH, block_flops)
        assert len(seen) == used


@pytest.mark.parametrize("flops", [0, MUCH])
def test_every_block_runs_once(flops: int) -> None:
    seen: list[int] = []
    threads.for_each(seen.append, [(i,) for i in range(100)], flops)
    assert sorted(seen) == list(range(100))


def test_two_threads_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)

    def meet(_: int) -> None:
        both.wait()

    threads.for_each(meet, [(0,), (1,)], MUCH)


def test_a_failure_in_any_block_is_raised() -> None:
    def block(i: int) -> None:
        if i == 37:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.for_each(block, [(i,) for i in range(64)], MUCH)


@pytest.mark.parametrize("granted", [0, 1])
def test_where_no_thread_can_be_had_the_others_do_it_all(granted: int) -> None:
    threads.set_threads(4)
    seen: list[int] = []
    for _ in range(3):
        with granting(granted):
            threads.for_each(seen.append, [(i,) for i in range(100)], MUCH)
    assert sorted(seen) == sorted(3 * [*range(100)])
    all_four = threading.Barrier(4, timeout=10)

    def meet(_: int) -> None:
        all_four.wait()

    threads.for_each(meet, [(i,) for i in range(4)], 3 * MUCH)


@pytest.mark.parametrize(
    ("flops", "used"), [(MUCH, 2), (2 * MUCH - 1, 2), (2 * MUCH, 3), (MUCH * 9, 4)]
)
def test_each_further_thread_wants_as_much_work_again(flops: int, used: int) -> None:
    threads.set_threads(4)
    met = threading.Barrier(used)
    seen: set[int] = set()

    def block(number: int) -> None:
        if number < used:
            met.wait(30.0)
        else:
            time.sleep(0.001)  # so that whoever else there is has a block, too
        seen.add(threading.get_ident())

    threads.for_each(block, [(i,) for i in range(40)], flops)
    assert len(seen) == used


def test_many_cpus_are_no_reason_for_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for cpus, used in ((1, 1), (3, 3), (4, 4), (64, threads.MOST_THREADS)):
        monkeypatch.setattr(threads, "usable_cpus", lambda cpus=cpus: cpus)
        assert threads.default_threads() == used


@pytest.mark.parametrize("flops", [0, MUCH])
def test_stop_is_polled_before_blocks(flops: int) -> None:
    done: list[int] = []
    blocks = [(i,) for i in range(1000)]
    with pytest.raises(Stopped):
        threads.computing(lambda: len(done) >= 3, threads.for_each, done.append, blocks, flops)
    assert len(done) < 10


def test_stop_ends_with_its_block() -> None:
    with pytest.raises(Stopped):
        threads.computing(lambda: True, threads.check_stop)
    threads.check_stop()


def test_blas_is_held_to_one_thread_and_put_back() -> None:
    found = blas.find()
    if found is None:
        pytest.skip("this NumPy's BLAS has no thread setting that we know")
    setter, getter = found.set_threads, found.get_threads
    before = getter()
    seen: list[int] = []

    def look(deeper: int) -> None:
        seen.append(getter())
        if deeper:
            threads.computing(None, look, deeper - 1)
            seen.append(getter())

    setter(2)
    try:
        threads.computing(None, look, 1)
        assert seen == [1, 1, 1]
        assert getter() == 2
    finally:
        setter(before)


@pytest.mark.parametrize("flops", [0, MUCH])
def test_nothing_that_computes_warns(flops: int) -> None:
    zeros = np.zeros(3, np.float32)
    blocks = [(zeros, zeros)] * 100
    with np.errstate(all="raise"):
        threads.computing(None, threads.for_each, np.divide, blocks, flops)
        with pytest.raises(FloatingPointError):
            np.divide(zeros, zeros)


def test_the_number_of_threads_may_change_while_others_compute() -> None:
    failures: list[BaseException] = []
    ended = threading.Event()

    def compute() -> None:
        try:
            while not ended.is_set():
                threads.for_each(lambda _: None, [(0,), (1,), (2,)], MUCH)
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    callers = [threading.Thread(target=compute) for _ in range(3)]
    for caller in callers:
        caller.start()
    for number in range(600):
        threads.set_threads(2 + number % 2)
    ended.set()
    for caller in callers:
        caller.join(10)
    assert not failures


def test_who_is_through_does_not_wait_for_threads_that_others_hold() -> None:
    """All threads are held, each by a computation that goes on until that of a third caller is through."""
    threads.set_threads(3)
    held, through = threading.Barrier(5), threading.Event()

    def hold(_: int) -> None:
        held.wait(30)
        assert through.wait(30)

    others = [
        threading.Thread(target=threads.for_each, args=(hold, [(0,), (1,)], MUCH)) for _ in range(2)
    ]
    for other in others:
        other.start()
    held.wait(30)
    third = threading.Thread(target=threads.for_each, args=(lambda _: None, [(0,), (1,)], MUCH))
    third.start()
    third.join(20)
    waits = third.is_alive()
    through.set()
    for other in [*others, third]:
        other.join()
    assert not waits


def test_there_are_no_more_threads_than_asked_for_the_caller_included() -> None:
    """Not even where a helper has work that nobody waits for any more."""

    def wait(event: threading.Event) -> None:
        event.wait(30)

    for number in (4, 3, 2):
        threads.set_threads(number)
        free = threading.Event()
        for _ in range(3):
            threads._submit(partial(wait, free), 5)
        names = [thread.name for thread in threading.enumerate()]
        free.set()
        assert names.count("convoke-engine") == number - 1


def test_no_fewer_than_one_thread() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        threads.set_threads(0)


@pytest.mark.parametrize("number", ["2", 1.5, 2.0, float("nan"), True, None])
def test_threads_are_counted_by_an_integer(number: Any) -> None:
    with pytest.raises(TypeError, match="is an integer, not"):
        threads.set_threads(number)
    threads.set_threads(np.int64(2))  # type: ignore[arg-type]
    assert type(threads.get_threads()) is int


FORKED = """
import os, signal, threading
from engine import threads

met = threading.Barrier(2)
threads.set_threads(2)
blocks = [(number,) for number in range(2)]
threads.for_each(lambda _: met.wait(30), blocks, threads.SMALL_FLOPS)
threads._lock.acquire()  # as another thread might have it
child = os.fork()
if child == 0:
    signal.alarm(30)
    threads.for_each(lambda _: met.wait(30), blocks, threads.SMALL_FLOPS)
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    """Its own two meet at each block; with none of them it would wait for ever."""
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=120).returncode == 0


@pytest.fixture
def wakefulness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wakefulness:
    device = tmp_path / "device"
    device.touch()
    kept = Wakefulness(device)
    monkeypatch.setattr(threads, "_wakefulness", kept)
    monkeypatch.setattr(threads, "_wakeful", True)  # a server in this process asks for it by itself
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    return kept


def _share(wakefulness: Wakefulness, seconds: float = 0.0) -> list[bool]:
    """Have two threads compute at the same time; whether processors are kept awake after so long."""
    both, held = threading.Barrier(2, timeout=10), []

    def block(_: int) -> None:
        both.wait()
        time.sleep(seconds)
        held.append(wakefulness.held)
        both.wait()  # whoever ends first may rest before the other has looked

    threads.for_each(block, [(0,), (1,)], MUCH)
    return held


def test_a_thread_that_rests_beside_one_that_works_lets_no_processor_sleep(
    wakefulness: Wakefulness, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = SimpleNamespace(working=True)
    monkeypatch.setattr(threads, "_crew", crew)
    wakefulness.hold()
    threads._rest()
    assert wakefulness.held
    crew.working = False
    threads._rest()
    assert not wakefulness.held


def _sleeps(wakefulness: Wakefulness) -> bool:
    deadline = time.monotonic() + 10
    while wakefulness.held and time.monotonic() < deadline:
        time.sleep(LINGER_S / 10)
    return not wakefulness.held


def test_processors_are_kept_awake_while_threads_compute_and_sleep_after(
    wakefulness: Wakefulness,
) -> None:
    for _ in range(2):
        assert _share(wakefulness, 3 * LINGER_S) == [True, True]
        assert _sleeps(wakefulness)


def test_only_threads_that_no_signal_interrupts_keep_processors_awake(
    wakefulness: Wakefulness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception of a signal could leave them awake for ever."""
    asked: list[int] = []
    monkeypatch.setattr(Wakefulness, "hold", lambda _: asked.append(threading.get_ident()))
    assert _share(wakefulness) == [False, False]
    assert len(asked) == 1
    assert asked != [threading.get_ident()]


def test_processors_may_sleep_where_one_thread_computes_or_few_of_many(
    wakefulness: Wakefulness, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads.for_each(lambda _: None, [(0,), (1,)], 0)
    assert not wakefulness.held
    threads.set_threads(3)  # so that none are left of an earlier test
    threads.set_threads(2)
    with granting(0):
        threads.for_each(lambda _: None, [(0,), (1,)], MUCH)
    assert not wakefulness.held
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert _share(wakefulness) == [False, False]


def test_processors_may_sleep_where_nobody_wants_them_awake(wakefulness: Wakefulness) -> None:
    wakefulness.hold()
    threads.set_wakeful(False)
    try:
        assert not wakefulness.held
        assert _share(wakefulness) == [False, False]
    finally:
        threads.set_wakeful(True)
    assert _share(wakefulness) == [True, True]
    wakefulness.hold()
    threads.set_threads(1)
    assert not wakefulness.held


def test_a_forked_child_keeps_nothing_awake_and_its_parent_does(wakefulness: Wakefulness) -> None:
    wakefulness.hold()
    child = os.fork()
    if child == 0:
        os._exit(int(wakefulness.held))
    assert os.waitpid(child, 0)[1] == 0
    assert wakefulness.held
    wakefulness.let_go()
