"""A trip under way: when its worker is ended, and what is remembered of it."""

from __future__ import annotations

import time
from unittest.mock import Mock

from app.trip import Trip
from app.workers.task import STOP_GRACE_S, SUSPENDED
from tests.app.dispatching import scenario


@scenario
async def test_a_call_that_nobody_waits_for_has_its_grace_and_no_more() -> None:
    worker = Mock(suspended=lambda: False)
    now = time.monotonic()
    # It was handed over five seconds ago, which took long, and nobody has looked since.
    trip = Trip([], worker, now - 5, now + 600, now - 5)
    trip.abandon("cancelled")
    trip.unwatch()
    assert now + STOP_GRACE_S <= trip.give_up <= time.monotonic() + STOP_GRACE_S
    worker.stop.assert_called_once()


@scenario
async def test_who_takes_too_long_is_ended_and_why_is_remembered() -> None:
    worker = Mock(suspended=lambda: False)
    now = time.monotonic()
    trip = Trip([], worker, now, now, now)
    trip.watch()
    worker.kill.assert_called_once_with("stuck")
    assert trip.killed == "stuck"


@scenario
async def test_so_is_who_was_suspended_and_nobody_else() -> None:
    now = time.monotonic()
    for suspended in (True, False):
        worker = Mock(suspended=lambda found=suspended: found)
        trip = Trip([], worker, now, now + 600, now)
        trip.watch()
        trip.unwatch()
        assert trip.killed == (SUSPENDED if suspended else None)
        assert worker.kill.called is suspended
