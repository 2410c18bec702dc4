"""What is quick does not wait for what is not, and neither takes the other's room."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.errors import MalformedBody, QueueFull
from app.scribe import desks as module
from app.scribe.desk import DeskLimits
from app.scribe.desks import Desks
from app.scribe.process import Scribe, ScribeOptions
from app.wire import PlanRequest, Request, encode
from tests.app.dispatching import scenario
from tests.app.gates import Gate
from tests.app.limits import decode_limits
from tests.app.scribe import faulty
from tests.app.wire.bodies import JSON

COMMAND = (sys.executable, "-P", str(Path(faulty.__file__)))
QUICK, SLOW = b"{}", faulty.AT_GATE


def maker(_: DeskLimits, *, urgent: bool = False) -> Callable[[], Scribe]:
    return lambda: Scribe(ScribeOptions(arena_bytes=1 << 22, command=COMMAND, urgent=urgent))


@scenario
async def test_what_is_quick_does_not_wait(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUICK_BYTES", len(SLOW))
    monkeypatch.setattr(module, "scribe_maker", maker)
    room = 4 * len(SLOW)
    limits = DeskLimits(decode_limits(), len(SLOW), room, work_s=60.0)
    desks = Desks(limits, lambda _: None)
    await desks.start()

    def read(body: bytes) -> asyncio.Task[Request | PlanRequest]:
        return asyncio.create_task(desks.read(body, "forward", "a", None))

    slow = [read(SLOW)]
    await gate.reached()
    slow += [read(SLOW), read(SLOW)]
    assert await read(QUICK) == Request(None, {}, None, ())
    y = {"y": np.ones((1, 1), np.float32)}
    assert bytes(await desks.write(y, {}, JSON, "a", None)) == encode(y, {}, JSON)
    with pytest.raises(QueueFull):
        await read(SLOW)
    assert await read(QUICK) == Request(None, {}, None, ())
    assert not any(each.done() for each in slow)
    large = {"y": np.ones(len(SLOW), np.float64)}
    slow_too = asyncio.create_task(desks.write(large, {}, JSON, "a", None))
    for each in slow:
        gate.open()
        await each
        if each is not slow[-1]:
            await gate.reached()
    assert bytes(await slow_too) == encode(large, {}, JSON)
    await desks.close()


@scenario
async def test_what_the_loop_could_read_is_handed_over_where_there_is_much_and_a_scribe_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "scribe_maker", maker)
    limits = DeskLimits(decode_limits(), 1 << 18, waiting_bytes=4 << 18, work_s=60.0)
    desks = Desks(limits, lambda _: None)
    await desks.start()
    large, middle = module.LARGE_BYTES, module.MIDDLE_BYTES

    with desks.company(large - 1), desks.company(large):
        assert desks.reads(large)
        assert desks.writes(module.LARGE_NUMBERS)
        assert not desks.reads(large - 1)
        assert not desks.writes(module.LARGE_NUMBERS - 1)
        assert not desks._quick._called
        with desks.company(1):
            assert not desks.reads(middle - 1)
            assert not desks._quick._called
            assert not desks.reads(middle)  # nobody waits for the scribe that this one makes come
            while not desks.reads(middle):
                await asyncio.sleep(0.01)
            assert desks.writes(module.MIDDLE_NUMBERS)
            assert not desks.reads(middle - 1)
            assert not desks.writes(module.MIDDLE_NUMBERS - 1)
        assert not desks.reads(large - 1)

    with desks.company(large // 2), desks.company(large // 2):
        full = asyncio.create_task(desks.read(b" " * (1 << 18), "forward", "a", None))
        quick = asyncio.create_task(desks.read(b" " * ((1 << 18) - 1), "forward", "a", None))
        await asyncio.sleep(0)
        assert not desks.reads(middle)  # the loop has to, where it would be refused
        for each in (full, quick):
            with pytest.raises(MalformedBody):
                await each
        assert desks.reads(middle)
        await desks.close()
        assert not desks.reads(middle)
