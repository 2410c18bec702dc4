"""Threads as far as they are granted: all work is done once, or said to be left."""

from __future__ import annotations

import gc
import threading
import time
import weakref

from engine.crew import Crew
from tests.starving import granting


def test_what_is_submitted_is_done_elsewhere() -> None:
    crew = Crew(1, "test")
    submitted = crew.submit(threading.get_ident)
    assert submitted is not None
    assert submitted.result() != threading.get_ident()
    crew.close()


def test_there_are_no_more_threads_than_asked_for_and_one_that_is_idle_is_used_first() -> None:
    started: list[int] = []
    crew = Crew(2, "test", lambda: started.append(threading.get_ident()))
    for expected in (1, 1, 2):
        both = threading.Barrier(expected, timeout=10)
        submitted = [crew.submit(both.wait) for _ in range(expected)]
        assert all(each is not None and each.exception() is None for each in submitted)
        while crew._unfinished:
            time.sleep(1e-3)
        assert len(started) == expected
    waits = [crew.submit(threading.get_ident) for _ in range(10)]
    assert {each.result() for each in waits if each is not None} <= set(started)
    crew.close()


def test_work_that_nobody_can_be_had_for_is_left_to_the_caller() -> None:
    crew = Crew(1, "test")
    done: list[str] = []
    with granting(0):
        assert crew.submit(lambda: done.append("left")) is None
    submitted = crew.submit(lambda: done.append("taken"))
    assert submitted is not None
    submitted.result()
    crew.close()
    assert done == ["taken"]


def test_where_there_are_threads_and_no_more_can_be_had_they_do_it() -> None:
    crew = Crew(2, "test")
    free = threading.Event()
    first = crew.submit(lambda: free.wait(10) and threading.get_ident())
    with granting(0):
        second = crew.submit(threading.get_ident)
    free.set()
    assert first is not None
    assert second is not None
    assert first.result() == second.result()
    crew.close()


def test_a_failure_is_the_result_and_holds_nothing_when_it_is_let_go() -> None:
    crew = Crew(1, "test")
    gc.disable()
    try:
        submitted = crew.submit(lambda: 1 // 0)
        assert submitted is not None
        failure = submitted.exception()
        assert isinstance(failure, ZeroDivisionError)
        crew.close()
        let_go = weakref.ref(submitted)
        del failure, submitted
        assert let_go() is None
    finally:
        gc.enable()


def test_a_thread_without_work_says_so_once_and_takes_what_comes_later() -> None:
    rests: list[int] = []
    rested = threading.Event()

    def rest() -> None:
        rests.append(threading.get_ident())
        rested.set()

    crew = Crew(1, "test", rest=rest, linger_s=1e-3)
    for times in (1, 2):
        submitted = crew.submit(threading.get_ident)
        assert submitted is not None
        assert rested.wait(10)
        rested.clear()
        time.sleep(0.02)
        assert rests == times * [submitted.result()]
    assert not crew.working
    crew.close()
