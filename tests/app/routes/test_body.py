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
