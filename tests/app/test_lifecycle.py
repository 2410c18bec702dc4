"""Requests under way, and who waits until there are none."""

from __future__ import annotations

import asyncio
from time import monotonic

from app.lifecycle import Lifecycle


def test_whoever_waits_for_the_last_answer_is_told_of_it_and_not_before() -> None:
    async def run() -> None:
        lifecycle = Lifecycle()
        await lifecycle.idle()
        lifecycle.begin()
        lifecycle.begin()
        waiting = asyncio.ensure_future(lifecycle.idle())
        lifecycle.end()
        await asyncio.sleep(0)
        assert (lifecycle.in_flight, waiting.done()) == (1, False)
        lifecycle.end()
        await asyncio.wait_for(waiting, 10)
        assert lifecycle.in_flight == 0
        lifecycle.begin()
        again = asyncio.ensure_future(lifecycle.idle())
        await asyncio.sleep(0)
        assert not again.done()
        lifecycle.end()
        await asyncio.wait_for(again, 10)

    asyncio.run(run())


def test_a_new_one_takes_work_and_waits_for_what_it_has() -> None:
    lifecycle = Lifecycle()
    assert (lifecycle.draining, lifecycle.hurried, lifecycle.in_flight) == (False, False, 0)


def test_what_had_come_when_it_began_to_drain_is_still_taken() -> None:
    lifecycle = Lifecycle()
    before = monotonic()
    assert lifecycle.takes(before + 3600.0)
    lifecycle.drain()
    after = monotonic() + 1e-3
    assert lifecycle.draining
    lifecycle.drain()  # a second time, which changes nothing
    assert lifecycle.takes(before - 1e-3)
    assert not lifecycle.takes(after)
