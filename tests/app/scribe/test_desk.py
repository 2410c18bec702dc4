"""The desk over scribes that are real processes, some of which misbehave when asked to."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.errors import (
    DeadlineExceeded,
    MalformedBody,
    QueueFull,
    ShuttingDown,
    WorkerCrashed,
    WorkersUnavailable,
)
from app.scribe import desk as desks
from app.scribe import process
from app.scribe.desk import Desk, DeskLimits, scribe_maker
from app.scribe.process import Scribe, ScribeOptions
from app.visitor import Visitor
from app.wire import PlanRequest, Request, encode
from app.workers import pool
from app.workers.task import EXHAUSTED, SUSPENDED, ComputeFailed
from tests.app.dispatching import PATIENCE_S, scenario
from tests.app.gates import Gate
from tests.app.limits import decode_limits
from tests.app.scribe import faulty
from tests.app.wire.bodies import JSON

COMMAND = (sys.executable, "-P", str(Path(faulty.__file__)))
LIMITS = DeskLimits(decode_limits(), body_bytes=1 << 20, waiting_bytes=1 << 20, work_s=60.0)
BODY = b'{"x": [[[1, 2, 3]]]}'


class Rig:
    """A desk, the scribes that it had, and what it told of them."""

    def __init__(self, limits: DeskLimits, command: tuple[str, ...]) -> None:
        self.scribes: list[Scribe] = []
        self.deaths: list[str] = []
        self.command = command
        self.desk = Desk(limits, self.deaths.append, self._make)

    def _make(self) -> Scribe:
        self.scribes.append(Scribe(ScribeOptions(arena_bytes=1 << 23, command=self.command)))
        return self.scribes[-1]

    @property
    def pid(self) -> int:
        child = self.scribes[-1]._child
        assert child is not None
        return child.pid

    def read(
        self, body: bytes = BODY, caller: str = "a", deadline: float | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.create_task(self.desk.read(body, "forward", caller, deadline))

    async def hold(self, gate: Gate) -> asyncio.Task[Any]:
        """Keep the scribe busy until the gate opens."""
        task = self.read(faulty.AT_GATE)
        await gate.reached()
        return task

    async def pass_on(self, gate: Gate) -> None:
        """Let the next scribe through the gate, once this one has died."""
        gate.open()
        while not self.deaths:
            await asyncio.sleep(0.01)
        await gate.reached()
        gate.open()


@asynccontextmanager
async def at_desk(
    command: tuple[str, ...] = COMMAND, limits: DeskLimits = LIMITS
) -> AsyncIterator[Rig]:
    rig = Rig(limits, command)
    await rig.desk.start()
    try:
        yield rig
    finally:
        await rig.desk.close()
    assert rig.desk._admission.nbytes == 0
    assert not rig.desk._waiting


def x_of(request: Any) -> list[Any]:
    assert isinstance(request, Request)
    values: list[Any] = request.tensors["x"].tolist()
    return values


@scenario
async def test_the_scribe_of_the_service_reads_plans_and_writes() -> None:
    deaths: list[str] = []
    desk = Desk(LIMITS, deaths.append, scribe_maker(LIMITS))
    await desk.start()
    assert x_of(await desk.read(BODY, "forward", "a", None)) == [[[1, 2, 3]]]
    plan = await desk.read(b'{"shapes": {"x": [1]}}', "plan", "a", None)
    assert plan == PlanRequest(None, {"x": (1,)}, "float32", ())
    y = {"y": np.linspace(0, 1, 1000, dtype=np.float32).reshape(10, 100)}
    assert bytes(await desk.write(y, {"a": 1}, JSON, "a", None)) == encode(y, {"a": 1}, JSON)
    with pytest.raises(MalformedBody, match="not JSON"):
        await desk.read(b"{", "forward", "a", None)
    await desk.close()
    assert deaths == []


@scenario
async def test_a_body_larger_than_a_message_comes_through() -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 50_000))
    body = b'{"x": {"dtype": "float64", "shape": [1, 1, 50000], "data": %s}}'
    async with at_desk() as rig:
        found = await rig.read(body % str(x.tolist()).encode())
        assert found.tensors["x"].tobytes() == x.tobytes()
        assert not found.tensors["x"].flags.writeable
        await rig.read()
        assert found.tensors["x"].tobytes() == x.tobytes()


@scenario
async def test_there_is_no_process_before_the_first_letter_nor_long_after_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(desks, "IDLE_S", 0.05)
    async with at_desk() as rig:
        await asyncio.sleep(0.1)
        assert not rig.scribes[0].there
        await rig.read()
        first = rig.pid
        while Path(f"/proc/{first}").exists():
            await asyncio.sleep(0.01)
        assert x_of(await rig.read()) == [[[1, 2, 3]]]
        assert rig.pid != first
    assert rig.deaths == []
    assert len(rig.scribes) == 1


@scenario
async def test_one_that_dies_idle_is_replaced_unnoticed() -> None:
    async with at_desk() as rig:
        await rig.read()
        for _ in range(10):
            os.kill(rig.pid, signal.SIGKILL)
            while not rig.scribes[-1]._child.dead:  # type: ignore[union-attr]
                await asyncio.sleep(0.001)
            await rig.read()
    assert rig.deaths == []
    assert len(rig.scribes) == 1


@scenario
async def test_one_that_is_killed_at_work_loses_nothing(gate: Gate) -> None:
    async with at_desk() as rig:
        held = await rig.hold(gate)
        waiting = rig.read()
        os.kill(rig.pid, signal.SIGKILL)
        await rig.pass_on(gate)
        assert (await held).extra == ("at gate",)
        assert x_of(await waiting) == [[[1, 2, 3]]]
    assert rig.deaths == ["killed"]


@scenario
async def test_one_that_is_suspended_is_replaced(gate: Gate) -> None:
    async with at_desk() as rig:
        held = await rig.hold(gate)
        os.kill(rig.pid, signal.SIGSTOP)
        await rig.pass_on(gate)
        await held
    assert rig.deaths == [SUSPENDED]


@scenario
async def test_a_letter_that_takes_all_memory_is_told_so() -> None:
    async with at_desk() as rig:
        with pytest.raises(MemoryError):
            await rig.read(faulty.STARVE)
        assert x_of(await rig.read()) == [[[1, 2, 3]]]
    assert set(rig.deaths) == {EXHAUSTED}


@scenario
async def test_a_letter_that_ends_scribes_is_given_up_and_the_next_one_read() -> None:
    async with at_desk() as rig:
        bad, good = rig.read(faulty.DIE), rig.read()
        with pytest.raises(WorkerCrashed):
            await bad
        assert x_of(await good) == [[[1, 2, 3]]]
        with pytest.raises(ComputeFailed, match="as asked"):
            await rig.read(faulty.FAIL)
    assert rig.deaths == ["crashed", "crashed"]


@scenario
async def test_a_letter_that_cannot_be_handed_over_is_answered_and_the_next_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def without_threads(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async with at_desk() as rig:
        with monkeypatch.context() as starved:
            starved.setattr(process, "copying", without_threads)
            with pytest.raises(RuntimeError, match="new thread") as failed:
                await rig.read()
        # The log shows where it happened, and holds no frame that would hold the letter.
        assert "in without_threads" in "".join(traceback.format_exception(failed.value))
        frames = traceback.extract_tb(failed.value.__traceback__)
        assert "without_threads" not in [frame.name for frame in frames]
        assert x_of(await rig.read()) == [[[1, 2, 3]]]
    assert rig.deaths == ["crashed"]


@scenario
async def test_one_that_is_stuck_is_ended() -> None:
    async with at_desk(limits=replace(LIMITS, work_s=1.0)) as rig:
        with pytest.raises(WorkerCrashed, match="longer than max_compute_s, 1 s"):
            await rig.read(faulty.FOR_EVER)
        assert x_of(await rig.read()) == [[[1, 2, 3]]]
    assert rig.deaths == ["stuck", "stuck"]


@scenario
async def test_time_in_which_the_server_was_suspended_makes_none_stuck(gate: Gate) -> None:
    async with at_desk(limits=replace(LIMITS, work_s=2.0)) as rig:
        held = await rig.hold(gate)
        time.sleep(4.0)  # as under SIGSTOP, nothing of this process goes on
        await asyncio.sleep(0.5)
        gate.open()
        assert (await held).extra == ("at gate",)
    assert rig.deaths == []


@scenario
async def test_a_deadline_is_answered_when_it_passes_and_the_work_ended() -> None:
    async with at_desk() as rig:
        await rig.read()
        deadline = time.monotonic() + 0.3
        with pytest.raises(DeadlineExceeded):
            await rig.read(faulty.FOR_EVER, deadline=deadline)
        assert time.monotonic() > deadline - 0.01
        assert rig.deaths == []  # the answer did not wait for that
        assert x_of(await rig.read()) == [[[1, 2, 3]]]
    assert rig.deaths == ["cancelled"]


@scenario
async def test_what_is_cancelled_while_it_waits_is_not_read(gate: Gate) -> None:
    async with at_desk() as rig:
        held = await rig.hold(gate)
        waiting = rig.read(faulty.FOR_EVER)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.open()
        await held
        await rig.read()
    assert rig.deaths == []


@scenario
async def test_what_is_cancelled_when_almost_done_costs_no_process(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "STOP_GRACE_S", PATIENCE_S)
    async with at_desk() as rig:
        held = await rig.hold(gate)
        pid = rig.pid
        held.cancel()
        gate.open()
        await rig.read()
        assert rig.pid == pid
    assert rig.deaths == []


@scenario
async def test_callers_take_turns(gate: Gate) -> None:
    done: list[str] = []

    def note(caller: str, _: object) -> None:
        done.append(caller)

    async with at_desk() as rig:
        held = await rig.hold(gate)
        tasks = []
        for caller in ("a", "a", "a", "b", "b", "c"):
            task = rig.read(caller=caller)
            task.add_done_callback(partial(note, caller))
            tasks.append(task)
        await asyncio.sleep(0)
        gate.open()
        await asyncio.gather(held, *tasks)
    assert done == ["a", "b", "c", "a", "b", "a"]


@scenario
async def test_what_waits_is_bounded_in_bytes_and_one_always_may(gate: Gate) -> None:
    limits = replace(LIMITS, waiting_bytes=len(faulty.AT_GATE) + len(BODY))
    async with at_desk(limits=limits) as rig:
        held = await rig.hold(gate)
        waiting = rig.read()
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="JSON") as refused:
            await rig.read(b"{}")
        assert refused.value.retry_after is not None
        y = {"y": np.zeros((1, 1), np.float32)}
        writing = asyncio.create_task(rig.desk.write(y, {}, JSON, "a", None))
        gate.open()
        await asyncio.gather(held, waiting, writing)
        assert (await rig.read(b'{"config": {}}' + b" " * 200)).config == {}


@scenario
async def test_the_refused_are_told_to_come_one_after_the_other_and_find_a_place(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(desks, "time", SimpleNamespace(monotonic=lambda: now))
    limits = replace(LIMITS, waiting_bytes=len(faulty.AT_GATE))
    async with at_desk(limits=limits) as rig:
        held = await rig.hold(gate)
        now += 0.1  # so long one takes
        gate.open()
        await held
        held = await rig.hold(gate)
        told = []
        for name in "abcdefgh":
            refusal = rig.desk.refusal(len(BODY), Visitor(name))
            assert refusal is not None
            told.append(refusal.retry_after)
        assert len(set(told)) > 1
        first = Visitor("", 7, "address")
        assert rig.desk.refusal(len(BODY), first) is not None
        rig.desk.left(first)
        assert rig.desk._admission._promises._loose.keys() == {"address"}
        gate.open()
        await held
        assert rig.desk.refusal(len(BODY)) is None
        await rig.desk.read(BODY, "forward", "a", None, Visitor("a"))


@scenario
async def test_at_the_end_everybody_has_an_answer(gate: Gate) -> None:
    async with at_desk() as rig:
        held = await rig.hold(gate)
        waiting = rig.read()
        await asyncio.sleep(0)
        pid = rig.pid
        await rig.desk.close()
        for task in (held, waiting, rig.read()):
            with pytest.raises(ShuttingDown):
                await task
    assert not Path(f"/proc/{pid}").exists()


@scenario
async def test_when_no_scribe_can_be_had_nobody_waits_for_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.0,))
    mended = tmp_path / "mended"
    program = (
        f"import os, runpy; os.path.exists({str(mended)!r}) or exit(1);"
        f"runpy.run_path({COMMAND[-1]!r}, run_name='__main__')"
    )
    async with at_desk((*COMMAND[:-1], "-c", program)) as rig:
        with pytest.raises(WorkersUnavailable):
            await rig.read()
        mended.touch()
        assert x_of(await rig.read()) == [[[1, 2, 3]]]
    assert rig.deaths == ["crashed"] * pool.HOPELESS_FAILURES


@scenario
async def test_a_program_that_cannot_be_run_is_a_failure_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.0,))
    async with at_desk(("/no/such/program",)) as rig:
        with pytest.raises(WorkersUnavailable):
            await rig.read()


@scenario
async def test_nothing_is_left_of_scribes_that_have_gone() -> None:
    def held() -> tuple[int, int]:
        gc.collect()
        maps = Path("/proc/self/maps").read_text().count("memfd:convoke")
        return len(list(Path("/proc/self/fd").iterdir())), maps

    async with at_desk() as rig:
        await rig.read()
        before = held()
        for _ in range(4):
            with pytest.raises(WorkerCrashed):
                await rig.read(faulty.DIE)
            await rig.read()
        assert held() == before
    assert held()[1] == 0
