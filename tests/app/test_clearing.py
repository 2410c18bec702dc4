"""A processor is left to small requests where many come beside long work, and only then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from app import clearing
from app.clearing import FEWER_PER_S, LOOK_S, MANY_PER_S, Clearing
from app.workers.inline import InlineWorker
from engine.threads import usable_cpus
from tests.app.dispatching import dispatching, expected, job, scenario
from tests.app.gates import Gate
from tests.app.limits import batch_limits
from tests.app.workers import faulty

MANY, FEWER, TOO_FEW = (
    round(factor * rate * LOOK_S)
    for factor, rate in ((1.2, MANY_PER_S), (1.2, FEWER_PER_S), (0.8, FEWER_PER_S))
)
"""Small requests between two looks."""


class Told(InlineWorker):
    """A worker that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[bool] = []

    def leave_one(self, wanted: bool) -> None:
        self.told.append(wanted)


class Clock:
    """The time of a loop, and the one timer that is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timer: Callable[[], None] | None = None

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Clock:
        assert self.timer is None
        assert seconds == LOOK_S
        self.timer = call
        return self

    def look(self, late: float = 0.0) -> None:
        """Let the time of the next look come."""
        self.now += LOOK_S + late
        assert self.timer is not None
        call, self.timer = self.timer, None
        call()


class Rig:
    """A clearing whose clock stands still, with one worker."""

    def __init__(self) -> None:
        self.clock, self.worker, self.full = Clock(), Told(), False
        self.clearing = Clearing(lambda: self.full)
        self._serving = self.clearing.served(self.worker)
        self._serving.__enter__()

    def begin(self) -> None:
        self.full = True
        self.clearing.long()

    def small(self, count: int) -> None:
        for _ in range(count):
            self.clearing.small()

    def die(self) -> None:
        self._serving.__exit__(None, None, None)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: made.clock)
    return made


def test_many_small_beside_long_work_have_a_processor_until_that_is_through(rig: Rig) -> None:
    rig.begin()
    for _ in range(3):
        rig.small(MANY)
        rig.clock.look()
        assert rig.worker.told == [True]
    rig.full = False
    rig.small(MANY)
    rig.clock.look()
    assert rig.worker.told == [True, False]
    assert rig.clock.timer is None


def test_few_have_none(rig: Rig) -> None:
    rig.begin()
    for _ in range(3):
        rig.small(FEWER)
        rig.clock.look()
    assert not rig.worker.told


def test_what_came_before_the_long_work_does_not_count(rig: Rig) -> None:
    rig.small(MANY)
    rig.begin()
    rig.clock.look()
    assert not rig.worker.told


def test_a_late_look_counts_no_more_for_it(rig: Rig) -> None:
    rig.begin()
    rig.small(MANY)
    rig.clock.look(late=LOOK_S)
    assert not rig.worker.told


def test_fewer_keep_it_until_they_are_too_few(rig: Rig) -> None:
    rig.begin()
    for count in (MANY, FEWER, FEWER, TOO_FEW, FEWER):
        rig.small(count)
        rig.clock.look()
    assert rig.worker.told == [True, False]


def test_one_long_task_after_the_other_counts_though_a_look_falls_between(rig: Rig) -> None:
    rig.begin()
    rig.small(MANY)
    rig.full = False
    rig.clock.look()
    assert rig.worker.told == [True]
    rig.begin()
    rig.full = False
    rig.small(MANY)
    rig.clock.look()
    assert rig.worker.told == [True]
    rig.clock.look()
    assert rig.worker.told == [True, False]


def test_where_a_worker_is_free_nobody_looks(rig: Rig) -> None:
    rig.clearing.long()
    assert rig.clock.timer is None


def test_a_worker_that_comes_later_is_told_at_once(rig: Rig) -> None:
    rig.begin()
    rig.small(MANY)
    rig.clock.look()
    late = Told()
    with rig.clearing.served(late):
        assert late.told == [True]
        rig.clock.look()
        assert late.told == [True, False]
    rig.begin()
    rig.small(MANY)
    rig.clock.look()
    assert late.told == [True, False]


def test_without_workers_nobody_looks_again(rig: Rig) -> None:
    rig.begin()
    rig.die()
    rig.small(MANY)
    rig.clock.look()
    assert rig.clock.timer is None
    assert not rig.clearing.clear


@pytest.mark.skipif(usable_cpus() < 2, reason="there is none to leave")
@scenario
async def test_a_worker_with_long_work_leaves_one_to_many_small(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing, "MANY_PER_S", 1.0)
    monkeypatch.setattr(clearing, "FEWER_PER_S", 1.0)
    ours = os.sched_getaffinity(0)
    async with dispatching(batch=batch_limits(small=1e5)) as rig:
        long = rig.submit(job(faulty.AT_GATE, width=1 << 18))
        await gate.reached()
        held, express = rig.workers
        while os.sched_getaffinity(held.pid) == ours:
            assert (await rig.dispatcher.submit(job(seed=2))).body == expected(job(seed=2))
        assert os.sched_getaffinity(held.pid) == ours - {min(ours)}
        assert os.sched_getaffinity(express.pid) == ours
        gate.open()
        await long
        while os.sched_getaffinity(held.pid) != ours:
            await asyncio.sleep(LOOK_S)
