"""Places that are never left empty, with workers that only pretend."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import cast

import pytest

from app.workers import pool
from app.workers.inline import InlineWorker
from app.workers.pool import HOPELESS_FAILURES, Pool
from app.workers.task import KILLED, SUSPENDED, Worker, WorkerDied
from tests.app.dispatching import scenario


class Life:
    """Workers whose lives are scripted: each entry is how one ends."""

    def __init__(self, *ends: str | Exception | None) -> None:
        self.ends = list(ends)
        self.deaths: list[str] = []
        self.closed = 0
        self.hopeless = 0
        self.forever = asyncio.Event()
        self.leaves = asyncio.Event()
        self.leaves.set()
        self.pool = Pool(1, self.make, self.serve, self.deaths.append, self.give_up)

    def make(self) -> Worker:
        life = self

        class Scripted(InlineWorker):
            async def start(self) -> None:
                if life.ends and life.ends[0] == "unborn":
                    life.ends.pop(0)
                    raise WorkerDied("crashed")
                if life.ends and isinstance(failure := life.ends[0], Exception):
                    life.ends.pop(0)
                    raise failure

            async def close(self) -> None:
                await life.leaves.wait()
                life.closed += 1
                await super().close()

        return Scripted()

    async def serve(self, worker: Worker, achieved: Callable[[], None]) -> None:  # noqa: ARG002
        end = self.ends.pop(0) if self.ends else None
        if end is None:
            self.forever.set()
            await asyncio.Event().wait()
        if end == "useful":
            achieved()
            end = "crashed"
        if end == "astray":
            raise ValueError(end)
        raise WorkerDied(str(end))

    def give_up(self) -> None:
        self.hopeless += 1


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def no_sleep(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", no_sleep)
    return waits


@scenario
async def test_restarts_back_off_until_something_is_achieved(waits: list[float]) -> None:
    life = Life("crashed", "crashed", "crashed", "useful", "crashed", "deadline", "deadline")
    await life.pool.start()
    await life.forever.wait()
    assert waits == [0.0, 0.1, 0.2, 0.0, 0.1, 0.1, 0.1]
    assert life.deaths == ["crashed"] * 5 + ["deadline"] * 2
    assert life.pool.up == 1
    await life.pool.close()
    assert life.pool.up == 0
    assert life.closed == 8


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("crashed", [0.0, 0.1, 0.2, 0.4]),
        (SUSPENDED, [0.0, 0.0, 0.0, 0.1]),
        (KILLED, [0.0, 0.0, 0.0, 0.1]),
        ("deadline", [0.0] * 4),
        ("cancelled", [0.0] * 4),
    ],
)
@scenario
async def test_a_death_counts_for_less_where_it_may_be_somebody_elses_doing(
    reason: str, expected: list[float], waits: list[float]
) -> None:
    life = Life(*[reason] * len(expected))
    await life.pool.start()
    await life.forever.wait()
    assert waits == expected
    await life.pool.close()


@scenario
async def test_a_place_is_kept_when_the_system_grants_no_worker(
    waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(OSError("no process"), MemoryError(), OSError("no file"))
    await life.pool.start()
    await life.forever.wait()
    assert waits == [0.0, 0.1, 0.2]
    assert life.deaths == ["crashed"] * 3
    told = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not any(record.exc_info for record in told)
    assert [record.getMessage().partition(": ")[2] for record in told] == [
        "OSError('no process')",
        "MemoryError()",
        "OSError('no file')",
    ]
    await life.pool.close()


@scenario
async def test_a_place_is_kept_whatever_fails_while_its_worker_serves(
    waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    life = Life("astray", "astray")
    await life.pool.start()
    await life.forever.wait()
    assert waits == [0.0, 0.1]
    assert life.deaths == ["crashed"] * 2
    assert life.pool.up == 1
    assert life.closed == 2
    logged = [record.getMessage() for record in caplog.records if record.exc_info]
    assert logged == ["a worker could not be given work: ValueError('astray')"] * 2
    await life.pool.close()


@scenario
async def test_deaths_after_long_lives_are_no_row(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "PROVEN_S", 0.0)
    life = Life(*["crashed"] * (HOPELESS_FAILURES + 2))
    await life.pool.start()
    await life.forever.wait()
    assert waits == [0.0] * (HOPELESS_FAILURES + 2)
    assert life.hopeless == 0
    await life.pool.close()


@scenario
async def test_a_place_that_fails_too_often_is_given_up_until_it_recovers() -> None:
    life = Life(*["unborn"] * HOPELESS_FAILURES)
    await life.pool.start()
    assert life.pool.hopeless
    assert life.hopeless == 1
    await life.forever.wait()
    assert not life.pool.hopeless
    await life.pool.close()


@scenario
async def test_one_that_is_closed_while_it_starts_starts_no_more() -> None:
    life = Life(*["unborn"] * HOPELESS_FAILURES)
    starting = asyncio.create_task(life.pool.start())
    while not life.deaths:
        await asyncio.sleep(0)
    await life.pool.close()
    await asyncio.sleep(0)
    assert starting.done()
    left = len(life.ends)
    assert left > 1
    await life.pool.start()
    await life.pool.close()
    assert len(life.ends) == left


@scenario
async def test_one_that_is_told_to_end_by_a_signal_while_it_starts_starts_no_more() -> None:
    started: list[None] = []
    closing: list[asyncio.Task[None]] = []

    class Starting(InlineWorker):
        async def start(self) -> None:
            if not started:
                os.kill(os.getpid(), signal.SIGUSR1)
            started.append(None)

    async def serve(*_: object) -> None:
        await asyncio.Event().wait()

    many = Pool(100, Starting, serve, pytest.fail, pytest.fail)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, lambda: closing.append(loop.create_task(many.close())))
    await many.start()
    while not closing:
        await asyncio.sleep(0)
    loop.remove_signal_handler(signal.SIGUSR1)
    await closing.pop()
    assert 0 < len(started) < 10
    assert many.up == 0


@scenario
async def test_one_that_cannot_be_ended_in_order_is_not_replaced_at_the_end() -> None:
    life = Life()
    await life.pool.start()
    await life.forever.wait()
    life.leaves = cast(asyncio.Event, None)  # which whoever closes it waits for
    await life.pool.close()
    assert life.pool.up == 0
    assert life.closed == 0


@scenario
async def test_whoever_closes_it_once_more_waits_for_the_orderly_end() -> None:
    life = Life()
    await life.pool.start()
    life.leaves.clear()
    closing = []
    for _ in range(2):
        closing.append(asyncio.create_task(life.pool.close()))
        for _ in range(5):
            await asyncio.sleep(0)
    assert not any(each.done() for each in closing)
    life.leaves.set()
    await asyncio.gather(*closing)
    assert life.closed == 1
