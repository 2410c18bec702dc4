"""Work is given up once the deaths and failures of workers speak against it so much."""

from __future__ import annotations

import pytest

from app.blame import bereaved, failed
from app.errors import WorkerCrashed
from app.workers.task import CRASHED, EXHAUSTED, KILLED, STUCK, SUSPENDED, ComputeFailed
from engine.errors import InvalidValue, Issue


class Work:
    """Work that is waited for, and what it was answered with."""

    def __init__(self) -> None:
        self.blame = 0.0
        self.answer: Exception | None = None

    def fail(self, error: Exception) -> None:
        self.answer = error


@pytest.mark.parametrize(
    ("reason", "deaths"), [(CRASHED, 2), (STUCK, 2), (KILLED, 4), (EXHAUSTED, 4)]
)
def test_it_is_given_up_after_so_many_deaths(reason: str, deaths: int) -> None:
    work = Work()
    for _ in range(deaths):
        assert work.answer is None
        bereaved(work, reason, 3.0)
    assert isinstance(work.answer, MemoryError if reason == EXHAUSTED else WorkerCrashed)
    assert ("max_compute_s, 3 s" in str(work.answer)) == (reason == STUCK)


def test_nobody_is_blamed_for_a_worker_that_was_suspended() -> None:
    work = Work()
    for _ in range(100):
        bereaved(work, SUSPENDED, 3.0)
    assert (work.blame, work.answer) == (0.0, None)


def test_a_failure_without_a_name_is_as_a_crash() -> None:
    work, again = Work(), ComputeFailed("again")
    failed(work, ComputeFailed("once"))
    assert work.answer is None
    failed(work, again)
    assert work.answer is again


@pytest.mark.parametrize("error", [MemoryError(), InvalidValue(Issue(("x",), "wrong"))])
def test_a_failure_with_a_name_is_the_answer(error: Exception) -> None:
    work = Work()
    failed(work, error)
    assert (work.blame, work.answer) == (0.0, error)
