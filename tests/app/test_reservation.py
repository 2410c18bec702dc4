"""A place is kept while a body comes, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

import pytest

from app import reservation
from app.admission import RESERVED, Admission, QueueLimits
from app.errors import QueueFull
from app.lanes import PACED_BYTES
from app.record import Record
from app.reservation import FAST_BYTES, Reservation
from app.visitor import NOBODY, Visitor

LOOK_S = 0.05


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation, "LOOK_S", LOOK_S)


def run(scenario: Callable[[Admission, Record], Awaitable[None]]) -> None:
    async def whole() -> None:
        admission = Admission(QueueLimits(requests=10, nbytes=2000))
        await scenario(admission, Record("id", {}, 0.0))
        assert admission.reserved == 0

    asyncio.run(asyncio.wait_for(whole(), 60))


def state(admission: Admission) -> tuple[int, int, int]:
    return admission.requests, admission.nbytes, admission.reserved


def test_what_is_reserved_becomes_a_permit() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        assert state(admission) == (1, 500, 500)
        admission.acquire(500, monotonic())
        place.take(400, monotonic())  # there is none for a newcomer
        assert state(admission) == (2, 900, 0)
        place.end()
        assert state(admission) == (2, 900, 0)

    run(scenario)


def test_more_than_was_reserved_has_to_find_room() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        admission.acquire(1500, monotonic())
        with pytest.raises(QueueFull):
            place.take(501, monotonic())
        assert state(admission) == (1, 1500, 0)

    run(scenario)


@pytest.mark.parametrize("nbytes", [500, 1100, 2000])
def test_who_had_the_only_place_is_not_sent_away_for_those_who_were_told_to_come(
    nbytes: int,
) -> None:
    admission = Admission(QueueLimits(requests=1, nbytes=2000))

    async def scenario() -> None:
        place = Reservation(admission, 400, NOBODY, Record("id", {}, 0.0))
        for connection in (1, 2, 3):
            with pytest.raises(QueueFull):
                admission.acquire(100, monotonic(), Visitor(connection=connection))
        place.take(nbytes, monotonic())  # with its outputs it has more than its body
        assert state(admission) == (1, nbytes, 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(("count", "nbytes"), [(1, int(RESERVED * 2000)), (2, 10)])
def test_no_more_is_reserved_than_a_part_of_the_queue(count: int, nbytes: int) -> None:
    """Others go on without, as long as there is room."""

    async def scenario(admission: Admission, record: Record) -> None:
        places = [Reservation(admission, nbytes, NOBODY, record) for _ in range(count)]
        full = state(admission)
        assert full == (count, count * nbytes, count * nbytes)
        other = Reservation(admission, nbytes, NOBODY, record)
        assert state(admission) == full
        admission.acquire(2001 - count * nbytes - nbytes, monotonic())
        with pytest.raises(QueueFull):
            Reservation(admission, nbytes, NOBODY, record)
        with pytest.raises(QueueFull):
            other.begin()  # it is its turn, and there is no room any more
        for place in places:
            place.end()
        other.begin()
        assert admission.reserved == nbytes
        other.end()

    run(scenario)


@pytest.mark.parametrize(
    ("taken", "nbytes", "count"),
    [((6, 6), 10, 4), ((1, 1960), 10, 4), ((0, 0), 600, 3)],
    ids=["by number", "by bytes", "nothing is reserved of so many"],
)
def test_those_who_wait_for_their_turn_come_before_others_who_would_have_to(
    taken: tuple[int, int], nbytes: int, count: int
) -> None:
    """There is room for so many more, of whom some wait without a place."""

    async def scenario(admission: Admission, record: Record) -> None:
        large = Record("id", {b"content-length": b"%d" % PACED_BYTES}, 0.0)
        for number in range(taken[0]):
            admission.acquire(taken[1] if not number else 0, monotonic())
        here, there = Visitor(address="here"), Visitor(address="there")
        places = [Reservation(admission, nbytes, here, large) for _ in range(count)]
        waits = [place for place in places if not place._nbytes]
        assert waits
        for place in waits:
            place.pause()
            place.pause()  # it has not begun to send meanwhile
        before = state(admission)
        with pytest.raises(QueueFull):
            Reservation(admission, nbytes + 10, here, large)
        assert state(admission) == before
        Reservation(admission, nbytes, here, record).end()  # a smaller one need not wait
        Reservation(admission, nbytes, there, large).end()  # nor is another address to suffer
        for place in waits:
            place.begin()
        assert not admission.waiting
        for place in places:
            place.end()

    run(scenario)


def test_who_waited_for_its_turn_leaves_no_place_to_those_who_were_told_to_come_after_it() -> None:
    async def scenario(admission: Admission, _: Record) -> None:
        large = Record("id", {b"content-length": b"%d" % PACED_BYTES}, 0.0)
        here = Visitor(address="here")
        admission.acquire(500, monotonic())
        places = [Reservation(admission, 600, here, large) for _ in range(2)]
        for place in places:
            place.pause()
        now = monotonic()
        told = admission.refusal_behind(600, now, Visitor("told", 1, "here"))
        assert told is not None
        assert "1700 bytes wait" in told.detail
        assert admission._told.ahead > 0  # for so long before its time places are left to it
        admission._promises.note(Visitor("told", 1, "here"), now, now)
        assert admission.refusal(600, now, Visitor("new", 2, "here")) is None
        admission.acquire(600, now, Visitor("new", 2, "here"))
        places[0].begin()
        admission.acquire(600, monotonic(), here, waited=True)
        with pytest.raises(QueueFull):
            places[1].begin()  # there is none at all
        for place in places:
            place.end()

    run(scenario)


def test_who_waited_for_its_turn_is_not_refused_for_those_who_were_told_to_come_after_it() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        here = Visitor(address="here")
        place = Reservation(admission, 1200, here, record)
        place.pause()
        now = monotonic()
        assert admission.refusal_behind(1200, now, Visitor("told", 1, "here")) is not None
        place.begin()
        assert not place._nbytes  # none is kept for so much
        admission._promises.note(Visitor("told", 1, "here"), now, now)
        assert admission.refusal(1300, now, Visitor("new", 2, "here")) is not None
        place.take(1300, now)
        assert (admission.requests, admission.nbytes) == (1, 1300)

    run(scenario)


def test_who_goes_while_it_waits_for_its_turn_is_not_waited_for() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        places = [Reservation(admission, 900, Visitor(address="here"), record) for _ in range(2)]
        for place in places:
            place.pause()
        assert admission.waiting == {"here": (2, 1800)}
        for place in places:
            place.end()
            place.end()
            assert admission.waiting == ({"here": (1, 900)} if place is places[0] else {})

    run(scenario)


def test_who_came_as_told_uses_up_one_promise() -> None:
    async def scenario(admission: Admission, _: Record) -> None:
        here = [Visitor("", number, "there") for number in (1, 2)]
        admission.acquire(2000, 0.0)
        due = 0.0
        for each in here:
            refusal = admission.refusal(100, 0.0, each)
            assert refusal is not None
            assert refusal.retry_after is not None
            due = max(due, refusal.retry_after)
            admission.left(each)
        admission.release(2000, 0.5)
        assert len(admission._promises) == 2
        admission.reserve(100, due, Visitor("", 3, "there"))
        admission.unreserve(100)
        admission.acquire(100, due, Visitor("", 3, "there"), reserved=100)
        assert len(admission._promises) == 1

    run(scenario)


def test_a_body_that_does_not_come_loses_its_place() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        record.bytes_in = FAST_BYTES - 1
        while admission.reserved:
            await asyncio.sleep(LOOK_S / 10)
        assert state(admission) == (0, 0, 0)
        place.take(600, monotonic())  # once it is whole, it is asked for as by a newcomer
        assert state(admission) == (1, 600, 0)

    run(scenario)


def test_a_body_that_comes_keeps_its_place() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        until = monotonic() + 5 * LOOK_S
        while monotonic() < until:
            record.bytes_in += FAST_BYTES
            assert admission.reserved == 500
            await asyncio.sleep(LOOK_S / 10)
        place.end()

    run(scenario)


def test_a_body_that_came_fast_and_then_does_not_loses_its_place() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        record.bytes_in = FAST_BYTES
        while admission.reserved:
            await asyncio.sleep(LOOK_S / 10)
        place.end()

    run(scenario)


def test_a_body_that_is_not_read_keeps_its_place() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        place.pause()
        await asyncio.sleep(3 * LOOK_S)
        assert admission.reserved == 500
        place.begin()
        while admission.reserved:
            await asyncio.sleep(LOOK_S / 10)

    run(scenario)
