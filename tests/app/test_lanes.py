"""Large bodies are received a few at a time, and who is slow keeps nobody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app import lanes
from app.lanes import (
    CALLERS,
    FAST_BYTES,
    LEAST,
    LOOK_S,
    PACED_BYTES,
    ROOM_BYTES,
    UNWANTED_RATE,
    Lane,
    Lanes,
)


class Guest:
    """Somebody who has so much to receive."""

    def __init__(
        self,
        lane: Lane,
        left: int,
        *,
        caller: str = "one",
        sends: bool = True,
        wanted: bool = True,
    ) -> None:
        self.left, self.caller = left, caller
        self.begun = 0
        self.left_us = False
        self._lane, self._sends, self._wanted = lane, sends, wanted
        lane.enter(self)

    def ready(self) -> bool:
        return self._sends

    def gone(self) -> bool:
        return self.left_us

    def begin(self) -> None:
        self.begun += 1
        if not self._wanted:
            self._lane.leave(self)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def begun(guests: list[Guest]) -> list[int]:
    return [guest.begun for guest in guests]


def test_the_largest_are_received_two_at_a_time_in_order() -> None:
    async def scenario() -> None:
        lane = Lane()
        guests = [Guest(lane, ROOM_BYTES) for _ in range(LEAST + 2)]
        assert begun(guests) == [1] * LEAST + [0, 0]
        lane.leave(guests[1])
        assert begun(guests) == [1] * LEAST + [1, 0]
        lane.leave(guests[3])  # gives up while it waits
        lane.leave(guests[0])
        assert begun(guests) == [1] * LEAST + [1, 0]

    run(scenario)


def test_who_has_no_turn_waits_for_nobody_who_has_many() -> None:
    async def scenario() -> None:
        lane = Lane()
        many = [Guest(lane, 10 * ROOM_BYTES) for _ in range(LEAST + 4)]
        others = [Guest(lane, ROOM_BYTES, caller="other") for _ in range(2)]
        assert begun([*many, *others]) == [1] * LEAST + [0] * 4 + [1, 0]
        lane.leave(others[0])
        assert begun([*many, *others]) == [1] * LEAST + [0] * 4 + [1, 1]

    run(scenario)


def test_the_next_is_of_the_caller_with_the_fewest_turns() -> None:
    async def scenario() -> None:
        lane = Lane()
        first = [Guest(lane, ROOM_BYTES, caller=f"{n}") for n in range(CALLERS)]
        again = [Guest(lane, ROOM_BYTES, caller=f"{n}") for n in range(CALLERS)]
        late = [Guest(lane, ROOM_BYTES, caller=name) for name in ("a", "b") for _ in range(2)]
        assert begun([*first, *again, *late]) == [1] * CALLERS + [0] * (CALLERS + 4)
        lane.leave(first[1])
        # Of those who have none, who has waited for longest.
        assert begun(again) == [0, 1, 0, 0]
        lane.leave(again[1])
        assert begun(late) == [1, 0, 0, 0]
        lane.leave(late[0])
        assert begun(late) == [1, 0, 1, 0], "a had its turn; now it is b's"
        lane.leave(late[2])
        assert begun(late) == [1, 1, 1, 0]
        assert begun(again) == [0, 1, 0, 0]

    run(scenario)


def test_who_of_another_caller_does_not_send_has_no_turn_before_those_who_do() -> None:
    async def scenario() -> None:
        lane = Lane()
        many = [Guest(lane, ROOM_BYTES) for _ in range(LEAST + 1)]
        silent = [Guest(lane, ROOM_BYTES, caller="other", sends=False) for _ in range(CALLERS)]
        assert begun([*many, *silent]) == [1] * LEAST + [0] * (1 + CALLERS)

    run(scenario)


def test_of_smaller_ones_as_many_as_there_is_room_for() -> None:
    async def scenario() -> None:
        lane = Lane()
        guests = [Guest(lane, PACED_BYTES) for _ in range(ROOM_BYTES // PACED_BYTES + 1)]
        assert begun(guests) == [1] * (len(guests) - 1) + [0]
        guests[0].left = 1
        lane.leave(guests[1])
        assert begun(guests) == [1] * len(guests)

    run(scenario)


def test_a_small_one_waits_for_nobody() -> None:
    async def scenario() -> None:
        lane = Lane()
        large = [Guest(lane, 10 * ROOM_BYTES) for _ in range(LEAST + 1)]
        small = Guest(lane, PACED_BYTES - 1)
        assert begun([*large, small]) == [1] * LEAST + [0, 1]
        lane.leave(small)
        assert begun(large) == [1] * LEAST + [0]

    run(scenario)


def test_others_go_past_those_who_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LOOK_S", 0.02)

    async def scenario() -> None:
        lane = Lane()
        slow, fast, *others = [Guest(lane, 10 * ROOM_BYTES) for _ in range(4)]
        assert lane._look is not None
        lane._look.cancel()
        lane._see()  # they had hardly begun
        assert begun([slow, fast, *others]) == [1, 1, 0, 0]
        slow.left -= FAST_BYTES - 1
        fast.left -= FAST_BYTES
        while not others[0].begun:
            await asyncio.sleep(0.001)
        assert begun([slow, fast, *others]) == [1, 1, 1, 0]
        lane.leave(slow)  # it had its turn, and no place any more
        assert not others[1].begun
        lane.leave(fast)
        assert others[1].begun

    run(scenario)


def test_who_sends_goes_before_those_who_do_not() -> None:
    async def scenario() -> None:
        lane = Lane()
        silent = [Guest(lane, ROOM_BYTES, sends=False) for _ in range(500)]
        assert begun(silent) == [1] * LEAST + [0] * (500 - LEAST)
        sending = Guest(lane, ROOM_BYTES)
        while not sending.begun:
            await asyncio.sleep(0.001)
        assert sum(begun(silent)) == 2 * LEAST - 1  # after one look

    run(scenario)


def test_however_many_have_no_use_for_their_turn() -> None:
    async def scenario() -> None:
        lane = Lane()
        first = [Guest(lane, ROOM_BYTES) for _ in range(LEAST)]
        unwanted = [Guest(lane, ROOM_BYTES, wanted=False) for _ in range(2000)]
        last = Guest(lane, ROOM_BYTES)
        lane.leave(first[0])
        assert begun([*unwanted, last]) == [1] * 2001

    run(scenario)


def test_nobody_looks_where_nobody_waits() -> None:
    async def scenario() -> None:
        lane = Lane()
        first, second, third = [Guest(lane, ROOM_BYTES) for _ in range(3)]
        assert lane._look is not None
        for guest in (first, second, third):
            lane.leave(guest)
        while lane._look is not None:
            await asyncio.sleep(0.001)

    run(scenario)


def test_a_rate_is_shared_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(lanes, "monotonic", lambda: now)
    lane = Lane(rate=1000.0)
    assert lane.pause(100) == pytest.approx(0.1)
    assert lane.pause(200) == pytest.approx(0.3)
    now += 0.2
    assert lane.pause(200) == pytest.approx(0.3)
    now += 10
    assert lane.pause(200) == pytest.approx(0.2)
    assert Lane().pause(1 << 40) == 0.0


def test_only_refused_bodies_have_a_rate() -> None:
    both = Lanes()
    assert both.unwanted.pause(UNWANTED_RATE) == pytest.approx(1.0, abs=1e-6)
    assert both.wanted.pause(UNWANTED_RATE) == pytest.approx(0.0, abs=1e-6)


def test_who_has_gone_waits_for_nobody() -> None:
    async def scenario() -> None:
        lane = Lane()
        guests = [Guest(lane, ROOM_BYTES) for _ in range(LEAST + 3)]
        guests[-2].left_us = True
        while not guests[-2].begun:
            guests[0].left -= FAST_BYTES  # so that nobody is found slow
            guests[1].left -= FAST_BYTES
            await asyncio.sleep(LOOK_S / 4)
        assert begun(guests) == [1] * LEAST + [0, 1, 0]
        lane.leave(guests[-2])
        assert begun(guests) == [1] * LEAST + [0, 1, 0]

    run(scenario)
