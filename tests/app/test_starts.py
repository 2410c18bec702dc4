"""How many requests of a crowd begin in a turn of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from app import starts
from app.few import FEW, Few
from app.starts import A_TURN, Starts

CROWD, OTHERS = "192.0.2.1", ("192.0.2.2", "192.0.2.3")
Test = Callable[["Rig"], Coroutine[Any, Any, None]]


class Rig:
    """Requests of a crowd and of others; those that have begun, in order."""

    def __init__(self) -> None:
        self.few = Few()
        self.starts = Starts(self.few)
        self.begun: list[str] = []
        self.number = 0

    def come(self, caller: str = CROWD, count: int = 1, length: int = 1) -> None:
        """So many more requests, each over a connection of its own."""
        for _ in range(count):
            self.number += 1
            begin = partial(self.begun.append, f"{caller} {self.number}")
            if self.starts.may(caller):
                begin()
            else:
                self.starts.wait(caller, begin, place=length > 0)
            self.few.enter(self.number, length, caller)

    @property
    def waiting(self) -> int:
        return sum(map(len, self.starts._of.values()))

    async def turn(self) -> list[str]:
        """What begins in the next turn."""
        before = len(self.begun)
        await asyncio.sleep(0)
        return self.begun[before:]


def within(test: Test) -> Callable[[], None]:
    return lambda: asyncio.run(test(Rig()))


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(starts, "SHORT_S", 600.0)


@within
async def test_a_crowd_alone_begins_at_once(rig: Rig) -> None:
    rig.come(count=10 * FEW)
    assert len(rig.begun) == 10 * FEW


@within
async def test_many_of_whom_none_is_a_crowd_begin_at_once(rig: Rig) -> None:
    for number in range(50):
        rig.come(str(number), FEW)
    assert len(rig.begun) == 50 * FEW


@within
async def test_beside_others_some_of_each_crowd_begin_in_a_turn_in_their_order(rig: Rig) -> None:
    crowds = (CROWD, "198.51.100.1")
    for crowd in crowds:
        rig.come(crowd, FEW + 1)
    for _ in range(2):
        await rig.turn()  # before which the second seemed to be none
    rig.starts._short_until = 0.0
    first = len(rig.begun)
    for other in OTHERS:
        rig.come(other)
    assert len(rig.begun) == first + len(OTHERS)
    for crowd in crowds:
        rig.come(crowd, 3 * A_TURN)
    # What began before turns were short counts for nothing.
    assert len(rig.begun) == first + len(OTHERS) + 2 * A_TURN
    assert rig.waiting == 2 * 2 * A_TURN
    for left in (1, 0):
        begun = await rig.turn()
        assert [name.split()[0] for name in begun] == [
            crowd for crowd in crowds for _ in range(A_TURN)
        ]
        assert rig.waiting == left * 2 * A_TURN
    rig.come(count=1)
    assert rig.waiting == 1, "as many have begun in this turn already"
    assert len(await rig.turn()) == 1
    assert await rig.turn() == []
    own = [int(name.split()[1]) for name in rig.begun if name.startswith(CROWD)]
    assert own == sorted(own)
    rig.come(count=A_TURN)
    assert rig.waiting == 0


@within
async def test_who_comes_later_does_not_pass_those_who_wait(rig: Rig) -> None:
    rig.come(count=FEW + 1)
    rig.come(OTHERS[0])
    rig.come(count=A_TURN + 1)
    waits = rig.number
    asyncio.get_running_loop().call_soon(rig.come)
    await rig.turn()
    await rig.turn()
    order = [int(name.split()[1]) for name in rig.begun]
    assert order == sorted(order)
    assert waits in order


@within
async def test_once_nobody_else_asks_all_begin(rig: Rig) -> None:
    rig.come(count=FEW + 1)
    rig.come(OTHERS[0])
    rig.come(count=10 * A_TURN)
    assert rig.waiting == 9 * A_TURN
    rig.starts._short_until = 0.0
    assert len(await rig.turn()) == 9 * A_TURN
    rig.come(count=10 * A_TURN)
    assert rig.waiting == 0


@within
async def test_a_crowd_has_as_many_as_all_others_had_in_the_turn_before(rig: Rig) -> None:
    rig.come(count=FEW + 1)
    for number in range(3 * A_TURN):
        rig.come(str(number))
    rig.come("asks for nothing", 2 * A_TURN, length=0)
    rig.come(count=20 * A_TURN)
    assert rig.waiting == 19 * A_TURN
    assert len(await rig.turn()) == 5 * A_TURN
    assert len(await rig.turn()) == A_TURN, "as nobody else asked"


@within
async def test_a_crowd_is_one_still_when_most_of_it_has_been_answered(rig: Rig) -> None:
    rig.come(count=FEW + 1)
    rig.come("198.51.100.1", FEW + 2)
    for number in range(FEW + 2, 2 * FEW + 4):
        rig.few.leave(number)
    assert not rig.few.crowd("198.51.100.1")
    rig.starts._short_until = 0.0
    rig.come("198.51.100.1")
    rig.come(count=10 * A_TURN)
    assert rig.waiting == 0, "there are crowds, and nobody else"
    rig.starts._was_crowd["198.51.100.1"] -= 1200.0
    rig.come("198.51.100.1")
    rig.come(count=10 * A_TURN)
    assert rig.waiting == 9 * A_TURN, "it is none any more"


def test_crowds_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "CROWDS", 2)

    @within
    async def test(rig: Rig) -> None:
        for caller in "abc":
            rig.come(caller, FEW + 2)
            assert 1 <= len(rig.starts._was_crowd) <= 2

    test()


@within
async def test_those_who_ask_for_a_place_are_counted_while_they_wait(rig: Rig) -> None:
    rig.come(count=FEW + 1)
    rig.come(OTHERS[0])
    rig.come(count=2 * A_TURN)
    rig.come(count=A_TURN, length=0)
    assert (rig.waiting, rig.starts.places) == (2 * A_TURN, A_TURN)
    await rig.turn()
    assert (rig.waiting, rig.starts.places) == (A_TURN, 0)


@within
async def test_those_who_wait_begin_though_they_are_a_crowd_no_more(rig: Rig) -> None:
    rig.come(count=FEW + 1)
    rig.come(OTHERS[0])
    rig.come(count=2 * A_TURN)
    for number in range(1, rig.number + 1):
        rig.few.leave(number)
    rig.come(count=1)  # which may begin before them, as there is no crowd
    assert rig.waiting == A_TURN
    assert len(await rig.turn()) == A_TURN
    assert rig.waiting == 0
