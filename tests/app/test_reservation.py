"""A place is kept while a body comes, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

import pytest

from app import reservation
from app.admission import RESERVED, Admission, QueueLimits
from app.errors import QueueFull
from app.promises import NOBODY
from app.record import Record
from app.reservation import FAST_BYTES, Reservation

LOOK_S = 0.05


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation, "LOOK_S", LOOK_S)


def run(scenario: Callable[[Admission, Record], Awaitable[None]]) -> None:
    async def whole() -> None:
        admission = Admission(QueueLimits(requests=10, nbytes=1000))
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
        admission.acquire(500, monotonic())
        with pytest.raises(QueueFull):
            place.take(501, monotonic())
        assert state(admission) == (1, 500, 0)

    run(scenario)


def test_no_more_is_reserved_than_a_part_of_the_queue() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        most = int(RESERVED * 1000)
        place = Reservation(admission, most, NOBODY, record)
        with pytest.raises(QueueFull):
            Reservation(admission, 1, NOBODY, record)
        admission.acquire(1000 - most, monotonic())
        place.end()
        assert state(admission) == (1, 1000 - most, 0)

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


def test_a_body_that_is_not_read_keeps_its_place() -> None:
    async def scenario(admission: Admission, record: Record) -> None:
        place = Reservation(admission, 500, NOBODY, record)
        place.rest()
        await asyncio.sleep(3 * LOOK_S)
        assert admission.reserved == 500
        place.watch()
        while admission.reserved:
            await asyncio.sleep(LOOK_S / 10)

    run(scenario)
