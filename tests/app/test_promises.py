"""Coming back when told to is worth it, and costs those who never do nothing."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field

import pytest

from app.admission import NEWCOMERS, Admission, QueueLimits
from app.errors import QueueFull
from app.promises import CAPACITY, EARLY_S, LATE_S, LONGEST_S, Promises

CAPACITY_PER_S = 100.0
QUEUE = 40


@dataclass
class Tally:
    accepted: int = 0
    retries: int = 0
    honoured: int = 0
    waits: list[float] = field(default_factory=list)

    @property
    def kept(self) -> float:
        return self.honoured / self.retries


def overloaded(seconds: float, rate: float, *, obedient: bool, named: bool = True) -> Tally:
    """A queue that drains steadily, and arrivals of which the refused come back when told to."""
    admission, tally, randoms = Admission(QueueLimits(QUEUE, 10**9)), Tally(), random.Random(5)
    events = [(1 / CAPACITY_PER_S, 0, "served", "")]
    due = 0.0
    for number in range(round(seconds * rate)):
        due += randoms.expovariate(rate)
        events.append((due, 1 + number, "first", f"{number}"))
    heapq.heapify(events)
    while events:
        now, order, kind, name = heapq.heappop(events)
        if kind == "served":
            if admission.requests:
                admission.release(1, now)
            if events:
                heapq.heappush(events, (now + 1 / CAPACITY_PER_S, 0, "served", ""))
            continue
        tally.retries += kind == "second"
        try:
            admission.check(name if named else f"{kind} {name}", now)
            admission.acquire(1, now, name if named else f"{kind} {name}")
        except QueueFull as refusal:
            wait = refusal.retry_after or math.nan
            tally.waits.append(wait)
            if obedient and kind == "first":
                later = now + math.ceil(wait)
                heapq.heappush(events, (later, order, "second", name))
            continue
        tally.accepted += 1
        tally.honoured += kind == "second"
    return tally


def test_at_twice_the_capacity_nine_in_ten_who_come_back_are_let_in() -> None:
    tally = overloaded(20.0, 2 * CAPACITY_PER_S, obedient=True)
    assert tally.retries > 1000
    assert tally.kept >= 0.9
    assert tally.accepted >= 0.9 * 20.0 * CAPACITY_PER_S


def test_those_who_never_come_back_cost_no_throughput_and_drive_no_wait_up() -> None:
    tally = overloaded(60.0, 2 * CAPACITY_PER_S, obedient=False)
    assert tally.accepted >= 0.95 * 60.0 * CAPACITY_PER_S
    assert sorted(tally.waits)[len(tally.waits) // 2] < 10.0


def test_who_comes_under_another_name_is_a_newcomer() -> None:
    assert overloaded(20.0, 2 * CAPACITY_PER_S, obedient=True, named=False).kept < 0.9


def test_newcomers_have_the_whole_queue_while_nothing_promised_is_due() -> None:
    admission = Admission(QueueLimits(8, 1000))
    for _ in range(8):
        admission.acquire(1, 0.0)
    with pytest.raises(QueueFull) as refusal:
        admission.acquire(1, 0.0, "promised")
    admission.release(1, 0.1)
    admission.acquire(1, 0.1)
    due = math.ceil(refusal.value.retry_after or 0)
    admission.release(1, due)
    with pytest.raises(QueueFull):
        admission.check("newcomer", due)
    admission.check("promised", due)
    admission.acquire(1, due, "promised")
    assert admission.requests == 8 > NEWCOMERS * 8


def test_a_promise_has_its_time_and_is_kept_once() -> None:
    promises = Promises()
    assert promises.make("a", 9.0, 1, 100.0) == 1
    assert not promises.due("a", 10.0 - EARLY_S - 0.01)
    assert promises.due("a", 10.0 - EARLY_S)
    assert promises.due("a", 10.0 + LATE_S)
    assert not promises.due("b", 10.0)
    assert promises.any_due(10.0)
    promises.keep("a")
    assert not promises.due("a", 10.0)
    assert not promises.any_due(10.0)


def test_promises_are_bounded_in_number_and_in_time() -> None:
    promises = Promises()
    for number in range(CAPACITY + 10):
        promises.make(str(number), 0.0, 1, math.inf)
    assert len(promises) == CAPACITY
    assert not promises.due("9", 1.0)
    assert promises.due("10", 1.0)
    assert not promises.any_due(1.0 + LATE_S + 0.1)
    assert len(promises) == 0


def test_promises_are_spread_and_the_last_second_takes_the_rest() -> None:
    promises = Promises()
    waits = [promises.make(str(number), 0.5, 2, 50.0) for number in range(1000)]
    assert waits == sorted(waits)
    assert waits[:11] == [2] * 5 + [3] * 5 + [4]  # a fifth of a second has room for 5
    assert waits[-1] == LONGEST_S
    promises.keep("0")
    assert promises.make("again", 0.5, 2, 50.0) == 2


def test_where_one_place_falls_free_in_a_while_one_is_promised_in_a_second() -> None:
    promises = Promises()
    waits = [promises.make(str(number), number / 10, 1, 0.5) for number in range(10)]
    assert waits == list(range(1, 11))
