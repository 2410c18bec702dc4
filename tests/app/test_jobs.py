"""What becomes of a job, and what is kept of its answer."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from app.errors import DeadlineExceeded, WorkerCrashed
from app.jobs import Answer, Done, Pending
from tests.app.dispatching import job, scenario


def pending() -> Pending:
    future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
    given = job()
    return Pending(
        call=given.call,
        parameters=(),
        rows=1,
        nbytes=1,
        work=1.0,
        caller="a",
        job=given,
        future=future,
        accepted=0.0,
    )


@scenario
async def test_a_job_is_settled_once() -> None:
    failed, gone = pending(), pending()
    failed.fail(WorkerCrashed())
    gone.future.cancel()
    for one in (failed, gone):
        one.fail(DeadlineExceeded())
    with pytest.raises(WorkerCrashed):
        await failed.future
    assert gone.future.cancelled()


def test_a_copied_answer_is_kept_though_its_memory_is_used_again() -> None:
    memory = np.arange(4.0)
    answer = Answer({"y": memory[1:]}, 2, 3)
    kept = answer.copied()
    memory[:] = 0
    assert kept.tensors["y"].tolist() == [1, 2, 3]
    assert (kept.requests, kept.rows) == (2, 3)
