"""Coming back when told to is worth it, and costs those who never do nothing."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission import HELD, Admission, QueueLimits
from app.density import AT_ONCE, PROMISED, SLOTS_PER_S
from app.errors import QueueFull
from app.promises import (
    CAPACITY,
    EARLY_NAMELESS_S,
    EARLY_S,
    GRACE_S,
    HELD_S,
    LATE_S,
    LONGEST_NAMELESS_S,
    LONGEST_S,
    OBEDIENCE_MEMORY,
    Capacity,
    Promises,
)
from app.visitor import Visitor

CAPACITY_PER_S = 100.0
QUEUE = 40
ROOM = math.inf
"""So much that no part of a second is too short."""


def named(name: str) -> Visitor:
    return Visitor(name, 0, "here")


@dataclass
class Tally:
    accepted: int = 0
    retries: int = 0
    honoured: int = 0
    waits: list[float] = field(default_factory=list)

    @property
    def kept(self) -> float:
        return self.honoured / self.retries


def overloaded(
    seconds: float,
    *,
    obedient: bool,
    known_by: str = "name",
    queue: int = QUEUE,
    per_s: float = CAPACITY_PER_S,
) -> Tally:
    """A queue that drains steadily, and twice as many arrivals; the refused come back when told to.

    Args:
        queue: its places. per_s: that it drains.
        known_by: by what they can be known again: their `name`, their `connection`, their `address`
            since each comes over a new connection, or `nothing`.
    """
    admission, tally, randoms = Admission(QueueLimits(queue, 10**9)), Tally(), random.Random(5)
    fresh = itertools.count(10**6)
    events = [(1 / per_s, 0, "served")]
    due = 0.0
    for number in range(1, round(seconds * 2 * per_s)):
        due += randoms.expovariate(2 * per_s)
        events.append((due, number, "first"))
    heapq.heapify(events)
    while events:
        now, number, kind = heapq.heappop(events)
        if kind == "served":
            if admission.requests:
                admission.release(1, now)
            if events:
                heapq.heappush(events, (now + 1 / per_s, 0, "served"))
            continue
        visitor = {
            "name": Visitor(f"{number}", 0, "here"),
            "connection": Visitor("", number, "here"),
            "address": Visitor("", next(fresh), "here"),
            "nothing": Visitor(f"{kind} {number}", 0, "here"),
        }[known_by]
        tally.retries += kind == "second"
        try:
            admission.acquire(1, now, visitor)
        except QueueFull as refusal:
            wait = refusal.retry_after or math.nan
            tally.waits.append(wait)
            if known_by == "address":
                admission.left(visitor)
            if obedient and kind == "first":
                heapq.heappush(events, (now + wait, number, "second"))
            continue
        tally.accepted += 1
        tally.honoured += kind == "second"
    return tally


@pytest.mark.parametrize(
    ("known_by", "seconds"), [("name", 20.0), ("connection", 7.0), ("address", 7.0)]
)
def test_at_twice_the_capacity_nine_in_ten_who_come_back_are_let_in(
    known_by: str, seconds: float
) -> None:
    tally = overloaded(seconds, obedient=True, known_by=known_by)
    assert tally.retries > 500
    assert tally.kept >= 0.97
    assert tally.accepted >= 0.9 * seconds * CAPACITY_PER_S


@pytest.mark.parametrize("queue", [1, 2, 3])
def test_also_where_there_are_few_places_and_these_fall_free_slowly(queue: int) -> None:
    assert overloaded(20.0, obedient=True, queue=queue, per_s=4.0).kept >= 0.95
    never = overloaded(20.0, obedient=False, queue=queue, per_s=20.0)
    assert never.accepted >= 0.75 * 20.0 * 20.0


def test_the_nameless_are_never_told_to_come_later_than_they_may_be_known() -> None:
    tally = overloaded(20.0, obedient=True, known_by="address")
    assert tally.kept >= 0.8
    assert max(tally.waits) <= LONGEST_NAMELESS_S


@pytest.mark.parametrize("known_by", ["name", "connection", "nothing"])
def test_those_who_never_come_back_cost_no_throughput_and_drive_no_wait_up(known_by: str) -> None:
    tally = overloaded(60.0, obedient=False, known_by=known_by)
    assert tally.accepted >= 0.95 * 60.0 * CAPACITY_PER_S
    assert sorted(tally.waits)[len(tally.waits) // 2] < 10.0


def test_who_comes_under_another_name_is_a_newcomer() -> None:
    assert overloaded(20.0, obedient=True, known_by="nothing").kept < 0.9


def test_a_crowd_that_came_at_once_is_let_in_when_it_comes_back() -> None:
    admission = Admission(QueueLimits(QUEUE, 10**9))
    later: dict[float, list[Visitor]] = {}
    for number in range(200):
        visitor = named(str(number))
        try:
            admission.acquire(1, 100.0, visitor)
        except QueueFull as refusal:
            later.setdefault(refusal.retry_after or math.nan, []).append(visitor)
    assert sum(map(len, later.values())) == 200 - QUEUE
    for wait, visitors in sorted(later.items()):
        while admission.requests:
            admission.release(1, 100.0 + wait - 0.5)
        for visitor in visitors:
            admission.acquire(1, 100.0 + wait, visitor)


def test_places_are_held_for_as_many_as_are_due_and_no_more_than_a_part_of_the_queue() -> None:
    admission, others = Admission(QueueLimits(8, 1000)), Visitor("other", 0, "there")
    for _ in range(8):
        admission.acquire(1, 0.0)
    with pytest.raises(QueueFull) as refusal:
        admission.acquire(1, 0.0, named("promised"))
    due = refusal.value.retry_after or math.nan
    admission.release(1, due)
    assert admission.refusal(1, due, others) is not None
    admission.release(1, due)
    assert admission.refusal(1, due, others) is None
    admission.acquire(1, due)
    assert admission.refusal(1, due, named("promised")) is None
    admission.acquire(1, due, named("promised"))
    assert admission.requests == 8

    promises = Promises()
    for number in range(20):
        promises.make(named(str(number)), 0.0, 1, 1e3, ROOM)
    assert promises.held(1.0) == (20, 0)
    crowded = Admission(QueueLimits(8, 1000))
    crowded._promises = promises
    for _ in range(round(8 * (1 - HELD))):
        crowded.acquire(1, 1.0, others)
    with pytest.raises(QueueFull):
        crowded.acquire(1, 1.0, others)


def test_those_who_were_let_in_a_moment_ago_count() -> None:
    admission = Admission(QueueLimits(8, 1000))
    assert admission.refusal(1, 0.0, named("a"), ahead=7) is None
    assert admission.refusal(1, 0.0, named("a"), ahead=8) is not None


def test_a_promise_has_its_time_and_is_kept_once() -> None:
    promises, a = Promises(), named("a")
    assert promises.make(a, 9.0, 1, 100.0, ROOM, 7) == 1
    assert promises.claim(a, 10.0 - EARLY_S - 0.01) is None
    assert promises.claim(a, 10.0 - EARLY_S) is not None
    assert promises.claim(a, 10.0 + LATE_S) is not None
    assert promises.claim(a, 10.0 + LATE_S + 0.01) is None
    assert promises.claim(named("b"), 10.0) is None
    assert promises.claim(Visitor("a", 0, "elsewhere"), 10.0) is None
    assert promises.held(10.0) == promises.held(10.0 + HELD_S) == (1, 7)
    assert promises.held(9.0) == promises.held(10.1 + HELD_S) == (0, 0)
    assert promises.held(8.1, 1.8) == (0, 0)
    assert promises.held(8.2, 1.8) == (1, 7)
    promise = promises.claim(a, 10.0)
    assert promise is not None
    promises.keep(promise)
    assert promises.claim(a, 10.0) is None
    assert promises.held(10.0) == (len(promises), 0) == (0, 0)


def test_what_is_held_follows_every_promise_and_the_time_ahead() -> None:
    promises = Promises()
    assert promises.held(8.0, 2.1) == (0, 0)
    promises.make(named("a"), 8.0, 2, CAPACITY_PER_S, ROOM, 5)
    assert promises.held(8.0, 2.1) == (1, 5)
    assert promises.held(8.0, 1.8) == (0, 0)
    assert promises.held(8.0, 2.1) == (1, 5)
    promises.make(visitor := Visitor("", 1, "here"), 8.0, 2, CAPACITY_PER_S, ROOM, 3)
    assert promises.held(8.0, 2.1) == (2, 8)
    promises.loosen(visitor)
    assert promises.held(8.0, 2.1) == (2, 8)
    assert promises.claim(Visitor("", 2, "here"), 10.0) == 2
    assert promises.held(8.0, 2.1) == (2, 8)
    promises.keep("here a")
    assert promises.held(8.0, 2.1) == (1, 3)


@pytest.mark.parametrize(("least", "large"), [(10, 10), (40, 0), (1, 40), (80, 80)])
def test_as_much_is_held_as_those_who_were_told_to_come_ask_for(least: int, large: int) -> None:
    admission = Admission(QueueLimits(requests=1000, nbytes=100))
    for _ in range(100):
        admission.acquire(1, 0.0)
    refusal = admission.refusal(least, 0.0, named("large"), expected=large)
    assert refusal is not None
    due = refusal.retry_after or math.nan
    for _ in range(100):
        admission.release(1, 0.5)
    others = itertools.count()
    while admission.refusal(1, due, visitor := named(f"small {next(others)}")) is None:
        admission.acquire(1, due, visitor)
    assert admission.nbytes == 100 - max(least, large)
    idle = Admission(QueueLimits(requests=1000, nbytes=100))
    idle._promises = admission._promises
    assert idle.refusal(1, due, named("small")) is None  # nobody stands idle for it
    admission.acquire(max(least, large), due, named("large"))


@pytest.mark.parametrize(("dues", "kept"), [([9], 70), ([9, 9], 50), ([5, 9], 50)], ids=str)
def test_no_more_than_a_part_of_the_queue_is_held_for_several_or_where_one_is_missed(
    dues: list[int], kept: int
) -> None:
    admission = Admission(QueueLimits(requests=1000, nbytes=100))
    for number, due in enumerate(dues):
        admission._promises.make(named(f"large {number}"), 0.0, due, 100.0, ROOM, 70)
    while admission.refusal(1, 9.0, named("small")) is None:
        admission.acquire(1, 9.0)
    assert admission.nbytes == 100 - kept


def test_without_a_name_a_connection_is_known_while_it_waits() -> None:
    promises = Promises()
    waits, asks, goes = (Visitor("", number, "here") for number in (1, 2, 3))
    for visitor in (waits, asks, goes):
        assert promises.make(visitor, 9.0, 1, 100.0, ROOM) == 1
    newcomer, elsewhere = Visitor("", 4, "here"), Visitor("", 5, "there")
    assert promises.claim(newcomer, 10.0) is None
    promises.loosen(goes)
    promises.loosen(newcomer)
    first = promises.claim(newcomer, 10.0)
    assert first is not None
    assert promises.claim(elsewhere, 10.0) is None
    promises.keep(first)
    assert promises.claim(newcomer, 10.0) is None
    assert promises.claim(asks, 9.1) is None
    second = promises.claim(newcomer, 10.0)
    assert second is not None
    promises.keep(second)
    own = promises.claim(waits, 10.0)
    assert own == waits.key
    promises.advance(100.0)
    assert len(promises) == 0


def loose(promises: Promises, *dues: float) -> None:
    """Promises that anybody of an address may call in."""
    for number, due in enumerate(dues, 101):
        promises.note(Visitor("", number, "here"), 9.0, due)
        promises.loosen(Visitor("", number, "here"))


def test_each_who_is_about_to_call_a_promise_in_leaves_the_later_ones_to_others() -> None:
    promises, (a, b, c) = Promises(), [Visitor("", number, "here") for number in (1, 2, 3)]
    loose(promises, 11.0, 10.0, 12.0)
    assert promises.claim(a, 11.0) == promises.claim(a, 11.0) == a.key
    assert promises.claim(b, 11.0) == b.key
    assert promises.claim(c, 11.0) is None
    assert len(promises) == 3
    promises.keep(2)  # in whatever order
    assert promises.claim(b, 11.0) is None
    assert promises.claim(c, 12.0) == c.key
    promises.loosen(a)  # it has gone without
    assert promises.claim(b, 12.0) == b.key
    promises.advance(100.0)
    assert len(promises) == 0


def test_who_comes_as_it_was_told_takes_nothing_from_others_of_its_address() -> None:
    promises, own, other = Promises(), Visitor("", 1, "here"), Visitor("", 2, "here")
    loose(promises, 10.0)
    promises.note(own, 9.0, 10.0)
    assert promises.claim(own, 10.0) == own.key
    assert promises.claim(other, 10.0) == other.key


def test_whose_own_promise_is_too_old_may_call_in_one_of_its_address() -> None:
    promises, visitor = Promises(), Visitor("", 1, "here")
    promises.note(visitor, 9.0, 10.0)
    loose(promises, 11.0)
    assert promises.claim(visitor, 10.5 + LATE_S) == visitor.key
    assert promises.claim(visitor, 11.0 + LATE_S) == visitor.key
    assert len(promises) == 1


def test_a_promise_that_is_too_old_hides_none_that_is_due() -> None:
    promises = Promises()
    loose(promises, 10.0, 15.5)
    assert promises.claim(Visitor("", 1, "here"), 15.6) is not None


def test_who_cannot_be_told_from_others_may_call_in_what_its_address_was_promised() -> None:
    promises, unknown = Promises(), Visitor("", 0, "here")
    loose(promises, 10.0)
    promise = promises.claim(unknown, 10.0)
    assert promise is not None
    promises.keep(promise)
    assert promises.claim(unknown, 10.0) is None


@pytest.mark.parametrize(("name", "early"), [("me", EARLY_S), ("", EARLY_NAMELESS_S)])
def test_a_name_may_come_earlier_than_a_connection(name: str, early: float) -> None:
    promises, visitor = Promises(), Visitor(name, 7, "here")
    assert promises.make(visitor, 9.0, 1, 100.0, ROOM) == 1
    assert promises.claim(visitor, 10.0 - early) is not None
    assert promises.claim(visitor, 9.99 - early) is None


def test_what_an_address_is_promised_is_nobodys_before_its_time_nor_for_a_grace() -> None:
    promises, told = Promises(), Visitor("", 1, "here")
    promises.make(told, 9.0, 1, 100.0, ROOM)
    promises.loosen(told)
    comes = Visitor("", 2, "here")
    assert promises.claim(comes, 9.999) is None
    assert promises.claim(comes, 10.0, grace=GRACE_S) is None
    assert promises.claim(comes, 10.001 + GRACE_S, grace=GRACE_S) is not None
    promises.loosen(comes)
    assert promises.claim(comes, 10.0) is not None
    assert promises.claim(comes, 10.0, grace=GRACE_S) is not None  # its own now


def test_where_it_is_crowded_who_has_a_place_anyway_leaves_promises_to_others() -> None:
    admission = Admission(QueueLimits(requests=4, nbytes=100))
    fresh = itertools.count(1)

    def come(now: float) -> Visitor:
        visitor = Visitor("", next(fresh), "here")
        admission.acquire(1, now, visitor)
        return visitor

    for _ in range(4):
        come(0.0)
    refused = Visitor("", next(fresh), "here")
    with pytest.raises(QueueFull):
        admission.acquire(1, 0.0, refused)
    admission.left(refused)
    for _ in range(3):
        admission.release(1, 0.5)
    due = 1.0
    come(due)
    come(due)  # there are places for these beside the one that is kept
    with pytest.raises(QueueFull):
        admission.acquire(99, due, Visitor("x"))
    come(due)  # which whoever comes next has need of
    with pytest.raises(QueueFull):
        come(due)


def test_the_nameless_of_an_address_who_come_at_once_each_find_what_was_promised() -> None:
    admission = Admission(QueueLimits(requests=8, nbytes=100))
    for number in range(8):
        admission.acquire(1, 0.0, Visitor("", 101 + number, "here"))
    told, goes = Visitor("", 1, "here"), Visitor("", 2, "here")
    for visitor in told, goes:
        with pytest.raises(QueueFull) as caught:
            admission.acquire(1, 0.0, visitor)
        assert caught.value.retry_after == 1
    admission.left(goes)
    for _ in range(2):
        admission.release(1, 0.5)
    # Nobody has a permit yet when the next is asked about.
    comes, newcomer = Visitor("", 3, "here"), Visitor("", 4, "here")
    assert admission.refusal(1, 1.0, told, ahead=0) is None
    assert admission.refusal(1, 1.0, newcomer, ahead=1) is None
    assert admission.refusal(1, 1.0, comes, ahead=2) is not None
    admission.acquire(1, 1.0, told)
    admission.acquire(1, 1.0, newcomer)


def test_who_cannot_be_told_from_others_is_promised_nothing() -> None:
    promises = Promises()
    assert promises.make(Visitor(), 0.0, 3, 100.0, ROOM) == 3
    assert len(promises) == 0


def test_promises_are_bounded_in_number_and_in_time() -> None:
    promises, most = Promises(), CAPACITY // 2
    for number in range(most + 10):
        promises.make(Visitor("", 1 + number, "here"), 0.0, 1, math.inf, ROOM)
    for number in range(0, most, 2):
        promises.loosen(Visitor("", 1 + number, "here"))
    assert len(promises) == most
    assert promises.claim(Visitor("", most, "there"), 1.0) is not None
    assert promises.claim(Visitor("", most + 1, "there"), 1.0) is None
    promises.advance(1.1 + LATE_S)
    assert len(promises) == 0
    assert not any(
        (promises._due, promises._address, promises._loose, promises._slots, promises._seconds)
    )


def test_a_promise_changes_hands_where_there_is_room_for_no_more() -> None:
    capacity = Capacity()
    ours, theirs = Promises(capacity), Promises(capacity)
    capacity.left = 20
    for number in range(1, 11):
        ours.note(Visitor("", number, "here"), 0.0, 1.0)
    for number in range(1, 11):
        theirs.note(Visitor("", number, "there"), 0.0, 1.0)
    assert (len(ours), len(theirs), capacity.left) == (10, 5, 5)
    ours.loosen(Visitor("", 1, "here"))
    promise = ours.claim(Visitor("", 99, "here"), 1.0)
    assert promise == 99
    ours.keep(promise)
    assert (len(ours), capacity.left) == (9, 6)
    for each in (ours, theirs):
        each.close()
        each.advance(100.0)
    assert (len(ours), len(theirs), capacity.left) == (0, 0, 20)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["note", "make", "claim", "loosen", "advance", "close"]),
            st.integers(0, 2),
            st.sampled_from(["", "a", "b"]),
            st.integers(1, 6),
        ),
        max_size=60,
    )
)
def test_room_is_what_is_not_taken_whatever_is_done(steps: list[tuple[str, int, str, int]]) -> None:
    capacity, now = Capacity(), 0.0
    capacity.left = most = 8
    each = [Promises(capacity) for _ in range(3)]
    for do, which, name, connection in steps:
        promises, visitor = each[which], Visitor(name, connection, "here")
        now += 0.3
        if do == "note":
            promises.note(visitor, now, now + 1.0)
        elif do == "make":
            promises.make(visitor, now, 1, 100.0, ROOM)
        elif do == "claim":
            promise = promises.claim(visitor, now)
            if promise is not None:
                promises.keep(promise)
        elif do == "loosen":
            promises.loosen(visitor)
        elif do == "advance":
            promises.advance(now)
        else:
            promises.close()
        assert capacity.left == most - sum(map(len, each)) >= 0


def test_who_comes_when_the_promise_has_just_been_forgotten_is_given_another() -> None:
    promises = Promises()
    assert promises.make(named("a"), 1000.0, 1, CAPACITY_PER_S, ROOM) == 1
    late = 1001.0 + LATE_S + 1
    assert promises.make(named("a"), late, 1, CAPACITY_PER_S, ROOM) == 1
    assert len(promises) == 1
    assert promises.claim(named("a"), late + 1) is not None


def test_what_was_forgotten_for_long_is_not_looked_through_part_by_part() -> None:
    promises = Promises()
    promises.make(named("a"), 1.0, 1, 100.0, ROOM)
    promises.advance(1e12)  # or else this would not come to its end
    assert len(promises) == 0
    assert promises.make(named("a"), 2e12, 1, 100.0, ROOM) == 1
    promises.advance(2e12 + 1)


def test_promises_are_spread_over_seconds_as_places_fall_free() -> None:
    promises = Promises()
    waits = [promises.make(named(str(number)), 0.5, 2, 50.0, ROOM) for number in range(2000)]
    assert waits == sorted(waits)
    each = round(PROMISED * 50)
    assert waits[: 2 * each + 1] == [2] * each + [3] * each + [4]
    assert waits[-1] == LONGEST_S
    promise = promises.claim(named("0"), 2.5)
    assert promise is not None
    promises.keep(promise)
    assert promises.make(named("again"), 0.5 + 1 / SLOTS_PER_S, 2, 60.0, ROOM) == 2


def test_promises_are_spread_over_a_second_as_the_queue_can_take_them() -> None:
    promises = Promises()
    waits = [promises.make(named(f"{number}"), 0.5, 1, 1e2, 30.0) for number in range(30)]
    each = round(AT_ONCE * 30)
    assert waits == [1] * each + [2] * each + [3] * each
    assert promises.make(named("a little later"), 0.6, 1, 1e2, 30.0) == 1


def test_who_was_promised_something_already_is_promised_one_thing_only() -> None:
    promises, again = Promises(), named("again")
    waits = [promises.make(named(str(number)), 0.5, 1, 20.0, ROOM) for number in range(5)]
    assert [promises.make(again, 0.5, 1, 20.0, ROOM) for _ in range(50)] == [1] * 50
    assert waits == [1] * 5
    assert len(promises) == 6
    others = [promises.make(named(letter), 0.5, 1, 20.0, ROOM) for letter in "abcde"]
    assert others == [1, 1, 1, 1, 2]  # as many as if it had come once


@pytest.mark.parametrize("name", ["", "a"])
def test_nobody_is_told_to_come_sooner_than_it_takes(name: str) -> None:
    least = LONGEST_S + 30
    assert Promises().make(Visitor(name, 1, "here"), 0.5, least, 100.0, ROOM) == least


def test_the_nameless_are_told_no_later_time_than_there_is_for_them() -> None:
    promises = Promises()
    for number in range(2000):
        promises.make(named(str(number)), 0.5, 1, 50.0, ROOM)
    connection = Visitor("", 1, "here")
    assert promises.make(connection, 0.5, 1, 50.0, ROOM) == LONGEST_NAMELESS_S
    assert promises.claim(connection, 0.5 + LONGEST_NAMELESS_S) is None


def test_nor_where_the_time_that_others_were_told_last_has_room_for_more() -> None:
    promises = Promises()
    while promises.make(named(f"{len(promises)}"), 0.5, 1, 4.0, 10.0) <= LONGEST_NAMELESS_S:
        pass
    assert promises.make(Visitor("", 1, "here"), 0.5, 1, 4.0, 10.0) == LONGEST_NAMELESS_S


def test_who_has_one_place_promises_one_in_the_time_in_which_another_falls_free() -> None:
    promises = Promises()
    waits = [promises.make(named(str(number)), number / 20, 1, 8.0, 1.0) for number in range(9)]
    assert waits == [1, 2, 3, 4, 5, 1, 2, 3, 4]


def test_where_somebody_who_was_told_to_come_is_missed_nobody_is_trusted() -> None:
    promises = Promises()
    promises.make(named("a"), 0.0, 1, 100.0, ROOM)
    assert promises.trusted(1.0 + HELD_S)
    assert not promises.trusted(1.1 + HELD_S)
    assert promises.trusted(1.1 + LATE_S)
    for number in range(OBEDIENCE_MEMORY):
        promises.make(named(str(number)), 0.0, 1, 100.0, ROOM)
    promises.advance(100.0)
    assert not promises.trusted(100.0)


def test_as_much_is_held_as_come_for_the_most_part_and_more_once_they_come_again() -> None:
    promises = Promises()

    def told(now: float) -> float:
        """How many of a hundred who are told to come a place is held for, and none of them comes."""
        for number in range(100):
            promises.make(named(str(number)), now, 1, math.inf, ROOM, 10)
        held, nbytes = promises.held(now + 1)
        assert nbytes == pytest.approx(10 * held)
        return held

    assert told(0.0) == 100
    assert told(10.0) == pytest.approx(100 * (1 - 1 / OBEDIENCE_MEMORY) ** 100)
    for number in range(100):
        promise = promises.claim(named(str(number)), 11.0)
        assert promise is not None
        promises.keep(promise)
    assert 80 < told(20.0) < 90
    assert promises.trusted(21.0)


def test_where_one_place_falls_free_in_a_while_one_is_promised_in_that_while() -> None:
    promises = Promises()
    waits = [promises.make(named(str(number)), number / 100, 1, 0.5, 1.0) for number in range(5)]
    assert waits == [1, 5, 9, 13, 17]
