"""Bodies are counted while they come and while they are held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from app.edge import REST
from app.errors import QueueFull
from app.incoming import Wanted
from app.record import Record
from app.routes import body
from app.routes.body import IN_PLACE_BYTES, Intake

SIZE = 2 * IN_PLACE_BYTES


class Sender:
    """A connection over which a body of `SIZE` bytes comes, whose first byte is there."""

    def __init__(self) -> None:
        self.count: Callable[[int], None] | None = None
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        record = Record("id", {b"content-length": b"%d" % SIZE}, 0.0)
        self.asked: Any = SimpleNamespace(
            record=record,
            scope={REST: self._rest},
            receive=self._receive,
            deadline=None,
            reserved=None,
            client="one",
        )

    async def _receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def _rest(self, wanted: Wanted) -> memoryview:
        place = wanted.place()
        assert (wanted.first, len(place)) == (b"x", SIZE)
        self.count = wanted.received
        await self._whole
        return place

    def come(self, size: int) -> None:
        """So many more bytes have come; as the transport does, without a task of their own."""
        assert self.count is not None
        try:
            self.count(size)
        except QueueFull as error:
            self._whole.set_exception(error)

    def end(self) -> None:
        self._whole.set_result(None)


async def read(intake: Intake, sender: Sender) -> int:
    return len(await intake.read(sender.asked, SIZE, "limit"))


def test_of_bodies_that_come_in_the_same_turn_no_more_are_refused_than_have_to_be() -> None:
    async def scenario() -> None:
        intake = Intake(2 * SIZE)
        senders = [Sender() for _ in range(3)]
        tasks = [asyncio.create_task(read(intake, sender)) for sender in senders]
        await asyncio.sleep(0)
        assert intake.held == 3
        for sender in senders:
            sender.come(SIZE // 2)
        for sender in senders:
            sender.come(SIZE // 2 - 1)  # the last of the first one are too many
        refused, *others = tasks
        with pytest.raises(QueueFull):
            await refused
        assert intake.held == 2 * SIZE
        for sender in senders[1:]:
            sender.end()
        assert await asyncio.gather(*others) == [SIZE, SIZE]
        assert intake.held == 2 * SIZE

    asyncio.run(scenario())


def test_what_has_come_of_a_body_that_is_given_up_is_counted_no_more() -> None:
    async def scenario() -> None:
        intake, sender = Intake(2 * SIZE), Sender()
        task = asyncio.create_task(read(intake, sender))
        await asyncio.sleep(0)
        sender.come(1000)
        assert intake.held == 1001
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert intake.held == 0

    asyncio.run(scenario())


def test_a_caller_that_takes_no_answers_does_not_keep_others_out() -> None:
    async def scenario() -> None:
        intake = Intake(8 * SIZE)
        for _ in range(20):
            intake.send("greedy", SIZE)
        greedy, other = Sender(), Sender()
        greedy.asked.client, other.asked.client = "greedy", "other"
        with pytest.raises(QueueFull, match="yet to take") as refusal:
            await read(intake, greedy)
        assert refusal.value.retry_after == 1
        reading = asyncio.create_task(read(intake, other))
        await asyncio.sleep(0)
        other.come(SIZE - 1)
        other.end()
        assert await reading == SIZE
        assert intake.held == 21 * SIZE
        # Small things are nobody's burden.
        intake.check_taken("greedy", IN_PLACE_BYTES - 1)
        for _ in range(18):
            intake.sent("greedy", SIZE)
        intake.check_taken("greedy", SIZE)
        for _ in range(2):
            intake.sent("greedy", SIZE)
        assert intake.held == SIZE

    asyncio.run(scenario())


def test_who_is_refused_is_told_when_half_of_what_is_held_will_have_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(body, "monotonic", lambda: now)

    async def scenario() -> None:
        nonlocal now
        intake = Intake(10 * SIZE)
        intake.hold(20 * SIZE)
        for _ in range(10):
            now += 1
            intake.release(SIZE)
        with pytest.raises(QueueFull) as refusal:
            await read(intake, Sender())
        # A body a second, and ten are held.
        assert refusal.value.retry_after == pytest.approx(5, rel=0.2)
        now += 1000
        with pytest.raises(QueueFull) as refusal:
            await read(intake, Sender())
        assert refusal.value.retry_after == body.RETRY_MAX_S

    asyncio.run(scenario())
