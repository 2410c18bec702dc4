"""Threads as far as they are granted: all work is done once, or said to be left."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import Future

import pytest

from engine.crew import Crew


def test_what_is_submitted_is_done_elsewhere() -> None:
    crew = Crew(1, "test")
    submitted = crew.submit(threading.get_ident)
    assert submitted is not None
    assert submitted.result() != threading.get_ident()
    crew.close()


def test_work_that_nobody_can_be_had_for_is_left_until_somebody_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crew = Crew(1, "test")
    done: list[str] = []
    with monkeypatch.context() as starved:
        starved.setattr(threading.Thread, "start", _denied)
        assert crew.submit(lambda: done.append("left")) is None
    submitted = crew.submit(lambda: done.append("taken"))
    assert submitted is not None
    submitted.result()
    crew.close()
    assert done == ["taken"]


def test_who_gets_free_just_then_has_it_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Crew(2, "test")
    free, began = threading.Event(), threading.Event()
    first = crew.submit(lambda: free.wait(10))

    def denied_at_last(_: threading.Thread) -> None:
        free.set()
        assert began.wait(10)
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as starved:
        starved.setattr(threading.Thread, "start", denied_at_last)
        second = crew.submit(began.set)
    assert isinstance(second, Future)
    second.result()
    assert first is not None
    assert first.result()


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


def _denied(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
