"""Bodies are counted while they come and while they are held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from app.admission import RETRY_MAX_S, RETRY_MIN_S
from app.edge import REST
from app.errors import BodyTooLarge, QueueFull, RequestTimeout
from app.incoming import Wanted
from app.record import Record
from app.routes import body
from app.routes.body import IN_PLACE_BYTES, Intake
from app.routes.coming import PROGRESS_BYTES

SIZE = 2 * IN_PLACE_BYTES


class Sender:
    """A connection over which a body of `SIZE` bytes comes, whose first byte is there."""

    def __init__(self, caller: str = "one") -> None:
        self.count: Callable[[int], None] | None = None
        self.turn: asyncio.Event | None = None
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        record = Record("id", {b"content-length": b"%d" % SIZE}, 0.0)
        self.asked: Any = SimpleNamespace(
            record=record,
            scope={REST: self._rest},
            receive=self._receive,
            deadline=None,
            reserved=None,
            caller=caller,
        )

    async def _receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def _rest(self, wanted: Wanted) -> memoryview:
        if self.turn is not None:
            await self.turn.wait()
        place = wanted.place()
        assert (wanted.first, len(place)) == (b"x", SIZE)
        assert wanted.caller == self.asked.caller
        self.count = wanted.received
        await self._whole
        return place

    def come(self, size: int) -> None:
        """So many more bytes have come; as the transport does, without a task of their own."""
        assert self.count is not None
        try:
            self.count(size)
        except (QueueFull, RequestTimeout) as error:
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


def test_a_body_that_stalls_gives_way_where_there_is_no_room() -> None:
    async def scenario() -> None:
        intake = Intake(4 * SIZE)
        trickling, moving, new = Sender(), Sender(), Sender()
        tasks = [asyncio.create_task(read(intake, each)) for each in (trickling, moving)]
        await asyncio.sleep(0)
        trickling.come(SIZE - 10)
        for _ in range(4):
            trickling.come(1)
            moving.come(PROGRESS_BYTES)
            intake._unfinished._see()
        intake.hold(4 * SIZE - intake.held)  # by others, who compute
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in tasks), "there is room for all"
        held = trickling.asked.record.bytes_in
        tasks.append(asyncio.create_task(read(intake, new)))
        await asyncio.sleep(0)
        assert intake.held == 4 * SIZE + 1 - held, "it is free at once"
        trickling.come(1)  # in the same turn
        with pytest.raises(RequestTimeout):
            await tasks[0]
        assert intake.held == 4 * SIZE + 1 - held
        with pytest.raises(QueueFull):
            await refused(intake, held)
        assert not any(task.done() for task in tasks[1:]), "who sends is not cut"
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(scenario())


def test_who_waits_for_its_turn_does_not_stall() -> None:
    async def scenario() -> None:
        intake = Intake(4 * SIZE)
        waiting = Sender()
        waiting.turn = asyncio.Event()
        task = asyncio.create_task(read(intake, waiting))
        await asyncio.sleep(0)
        for _ in range(3):
            intake._unfinished._see()
        intake.hold(4 * SIZE - 1)
        with pytest.raises(QueueFull):
            await refused(intake, 1)
        waiting.turn.set()
        await asyncio.sleep(0)
        intake._unfinished._see()  # it had no whole look's time
        with pytest.raises(QueueFull):
            await refused(intake, 1)
        intake._unfinished._see()
        second = asyncio.create_task(read(intake, Sender()))
        with pytest.raises(RequestTimeout):
            await task
        assert intake.held == 4 * SIZE
        second.cancel()

    asyncio.run(scenario())


def test_the_bodies_of_who_holds_more_than_half_give_way_to_another_s() -> None:
    async def scenario() -> None:
        intake = Intake(4 * SIZE)
        greedy, other = [Sender() for _ in range(4)], Sender("other")
        tasks = [asyncio.create_task(read(intake, each)) for each in [*greedy, other]]
        await asyncio.sleep(0)
        for each in greedy:
            each.come(SIZE - 2)
        with pytest.raises(QueueFull):
            await refused(intake, 4)  # to its own they do not
        other.come(SIZE - 1)
        other.end()
        assert await tasks[4] == SIZE
        done, rest = await asyncio.wait(tasks[:4], return_when=asyncio.FIRST_COMPLETED)
        assert [str(task.exception()) for task in done] == ["Too many bodies are held already."]
        # Its part is left to it.
        intake.hold(SIZE)
        with pytest.raises(QueueFull):
            await refused(intake, SIZE, "other")
        for task in rest:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(scenario())


async def refused(intake: Intake, size: int, caller: str = "one") -> None:
    """Read a body of which so many bytes come at once, for which there is no room."""
    sender = Sender(caller)
    task = asyncio.create_task(read(intake, sender))
    await asyncio.sleep(0)
    if size > 1:
        sender.come(size - 1)
    await asyncio.wait_for(task, 60)


def test_a_caller_that_takes_no_answers_does_not_keep_others_out() -> None:
    async def scenario() -> None:
        intake = Intake(8 * SIZE)
        for _ in range(4):
            assert intake.promise("greedy", SIZE) == SIZE
        with pytest.raises(QueueFull, match="yet to take") as refusal:
            intake.promise("greedy", SIZE)
        assert refusal.value.retry_after == 1
        for _ in range(4):
            intake.made("greedy", SIZE)
            intake.send("greedy", SIZE)
        # It is refused at the head, and small things are nobody's burden.
        intake.hold(SIZE)
        greedy, other = Sender(), Sender()
        greedy.asked.caller, other.asked.caller = "greedy", "other"
        greedy.asked.record.headers[b"content-length"] = b"%d" % IN_PLACE_BYTES
        intake.sent("greedy", SIZE)
        intake.send("greedy", SIZE + 1)
        with pytest.raises(QueueFull, match="yet to take"):
            await read(intake, greedy)
        assert intake.promise("greedy", IN_PLACE_BYTES - 1) == 0
        # What it holds counts for others up to a quarter of what there is.
        intake.hold(3 * SIZE)
        reading = asyncio.create_task(read(intake, other))
        await asyncio.sleep(0)
        other.come(SIZE - 1)
        other.end()
        assert await reading == SIZE
        assert intake.held == 9 * SIZE + 1

    asyncio.run(scenario())


def test_one_answer_may_be_as_large_as_it_is() -> None:
    intake = Intake(8 * SIZE)
    assert intake.promise("one", 6 * SIZE) == 6 * SIZE
    intake.made("one", 6 * SIZE)
    intake.send("one", 6 * SIZE)
    intake.sent("one", 6 * SIZE)
    assert intake.held == 0


def test_a_body_that_is_too_large_is_so_for_a_caller_with_too_many_answers_too() -> None:
    async def scenario() -> None:
        intake = Intake(2 * SIZE)
        intake.send("one", 2 * SIZE)
        with pytest.raises(QueueFull, match="yet to take"):
            await intake.read(Sender().asked, SIZE, "limit")
        with pytest.raises(BodyTooLarge):
            await intake.read(Sender().asked, SIZE - 1, "limit")

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
        assert refusal.value.retry_after == RETRY_MAX_S

    asyncio.run(scenario())


def test_a_quiet_minute_says_nothing_of_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(body, "monotonic", lambda: now)

    async def scenario() -> None:
        nonlocal now
        intake = Intake(2 * SIZE)
        for _ in range(10):
            intake.hold(SIZE)
            now += 0.1
            intake.release(SIZE)
        now += 75
        intake.hold(2 * SIZE)
        with pytest.raises(QueueFull) as refusal:
            await read(intake, Sender())
        assert refusal.value.retry_after == RETRY_MIN_S

    asyncio.run(scenario())
