"""Permits, and when to come back."""

from __future__ import annotations

import pytest

from app.admission import (
    GATHERED_S,
    RETRY_MAX_S,
    RETRY_MIN_S,
    SOLE_S,
    TOLD_S,
    Admission,
    QueueLimits,
)
from app.draining import DrainRate
from app.errors import QueueFull
from app.visitor import NOBODY, Visitor


def test_permits_are_counted_and_come_back() -> None:
    admission = Admission(QueueLimits(requests=2, nbytes=100))
    admission.acquire(40, 0.0)
    admission.acquire(60, 0.0)
    with pytest.raises(QueueFull, match="2 requests"):
        admission.acquire(0, 0.0)
    admission.release(40, 1.0)
    with pytest.raises(QueueFull):
        admission.acquire(41, 1.0)
    admission.acquire(40, 1.0)
    assert (admission.requests, admission.nbytes) == (2, 100)


def test_a_request_larger_than_the_queue_is_let_in_when_it_is_alone() -> None:
    admission = Admission(QueueLimits(requests=2, nbytes=100))
    admission.acquire(1000, 0.0)
    with pytest.raises(QueueFull):
        admission.acquire(1, 0.0)
    admission.release(1000, 1.0)
    assert (admission.requests, admission.nbytes) == (0, 0)


def refused_until(admission: Admission, now: float) -> float:
    with pytest.raises(QueueFull) as refusal:
        admission.acquire(1, now)
    assert refusal.value.retry_after is not None
    return refusal.value.retry_after


def test_retry_after_is_what_the_queue_takes_to_drain() -> None:
    admission = Admission(QueueLimits(requests=40, nbytes=10**6))
    for _ in range(40):
        admission.acquire(1, 0.0)
    for tick in range(1, 301):  # ten a second, for thirty seconds
        admission.release(1, tick / 10)
        admission.acquire(1, tick / 10)
    assert refused_until(admission, 30.0) == pytest.approx(4.0, rel=0.05)


def test_what_the_refused_are_told_of_the_queue_is_worked_out_once_in_a_while() -> None:
    admission = Admission(QueueLimits(requests=2, nbytes=100))
    admission.acquire(40, 0.0)
    admission.acquire(60, 0.0)

    def told(now: float) -> str:
        refusal = admission.refusal(1, now, NOBODY)
        assert refusal is not None
        return refusal.detail

    first = told(1.0)
    assert first.startswith("2 requests with 100 bytes")
    admission.release(60, 1.0)
    admission.acquire(30, 1.0)
    assert told(1.0 + TOLD_S / 2) == first
    assert told(1.0 + TOLD_S).startswith("2 requests with 70 bytes")


def test_places_are_held_by_bytes_where_these_are_what_is_short() -> None:
    admission = Admission(QueueLimits(requests=1000, nbytes=100))
    for _ in range(10):
        admission.acquire(10, 0.0)
    promised = [Visitor(name) for name in "abc"]
    for visitor, now in zip(promised, (0.0, 0.0, 0.1), strict=True):
        refusal = admission.refusal(10, now, visitor)
        assert refusal is not None
        assert refusal.retry_after == RETRY_MIN_S
    for _ in promised:
        admission.release(10, 1.0)
    with pytest.raises(QueueFull):
        admission.acquire(10, 1.0, Visitor("newcomer"))
    for visitor in promised:
        admission.acquire(10, 1.0, visitor)


@pytest.mark.parametrize(
    ("limits", "each"),
    [(QueueLimits(1, 10**6), 1), (QueueLimits(1000, 100), 60), (QueueLimits(5, 100), 200)],
)
def test_the_only_place_is_kept_for_who_was_told_to_come(limits: QueueLimits, each: int) -> None:
    admission, told, newcomer = Admission(limits), Visitor("told"), Visitor("newcomer")
    admission.acquire(each, 0.0)
    assert admission.refusal(each, 0.0, told) is not None
    admission.release(each, 0.5)
    refusal = admission.refusal(each, 1.0, newcomer)
    assert refusal is not None
    assert refusal.detail.startswith("0 requests with 0 bytes wait")
    assert admission.refusal(each, 1.0, told) is None
    # Where it is not taken in its time, others may have it.
    assert admission.refusal(each, 1.0 + SOLE_S / 2, Visitor("another")) is not None
    assert admission.refusal(each, 1.05 + SOLE_S, Visitor("another")) is None
    admission.acquire(each, 1.7, told)
    assert admission.refusal(each, 1.8, newcomer) is not None


@pytest.mark.parametrize("told", [Visitor("told"), Visitor("", 1)])
def test_the_only_place_is_kept_from_nobody_whom_it_is_kept_for(told: Visitor) -> None:
    admission = Admission(QueueLimits(1, 100))
    admission.acquire(1, 0.0)
    assert admission.refusal(1, 0.0, told) is not None
    assert admission.refusal(1, 0.5, told) is not None  # somebody has it
    admission.release(1, 0.6)
    assert admission.refusal(1, 1.0, Visitor("newcomer", 2)) is not None
    admission.acquire(1, 1.0, told)
    assert len(admission._promises) == 1  # that of the newcomer


@pytest.mark.parametrize("places", [1, 2])
def test_who_gave_a_name_and_is_let_in_early_is_not_missed(places: int) -> None:
    """Nobody comes for its promise any more, and those who were told to come are trusted still."""
    admission, told = Admission(QueueLimits(places, 100)), Visitor("told")
    for _ in range(places):
        admission.acquire(1, 0.0)
    refusal = admission.refusal(1, 0.0, told)
    assert refusal is not None
    assert refusal.retry_after == 1.0
    for _ in range(places):
        admission.release(1, 0.001)
    admission.acquire(1, 0.002, told)
    assert not admission._promises


def test_who_gave_none_has_its_promise_still_if_there_were_several_places() -> None:
    """Others may ask over its connection meanwhile."""
    admission, told = Admission(QueueLimits(2, 100)), Visitor("", 1)
    for _ in range(2):
        admission.acquire(1, 0.0)
    assert admission.refusal(1, 0.0, told) is not None
    for _ in range(2):
        admission.release(1, 0.1)
    admission.acquire(1, 0.6, told)
    assert len(admission._promises) == 1


def test_who_comes_a_little_early_finds_the_only_place_however_fast_it_falls_free() -> None:
    admission, told = Admission(QueueLimits(1, 100)), Visitor("", 1)
    for hundredth in range(300):
        admission.acquire(1, hundredth / 100)
        admission.release(1, (hundredth + 0.1) / 100)
    admission.acquire(1, 20.04)
    assert admission.refusal(1, 20.04, told) is not None
    admission.release(1, 20.05)
    assert admission.refusal(1, 21.001, Visitor("newcomer", 2)) is not None
    assert admission.refusal(1, 21.001, told) is None


def test_it_is_crowded_where_half_of_either_limit_is_taken() -> None:
    admission = Admission(QueueLimits(10, 100))
    for _ in range(4):
        admission.acquire(12, 0.0)
    assert [admission.crowded(more) for more in (1, 2)] == [False, True]
    admission.release(12, 0.0)
    admission.acquire(15, 0.0)
    assert admission.crowded(1)


def test_places_are_held_for_what_has_no_bytes_as_well() -> None:
    admission = Admission(QueueLimits(8, 8))
    for _ in range(8):
        admission.acquire(0, 0.0)
    for number in range(3):
        assert admission.refusal(0, number / 10, Visitor(str(number))) is not None
    for _ in range(3):
        admission.release(0, 1.0)
    assert admission.refusal(0, 1.0, Visitor("newcomer")) is not None


def test_a_place_is_held_with_as_many_bytes_as_others_have() -> None:
    """Who was refused by its head alone may ask for more."""
    admission = Admission(QueueLimits(1000, 100))
    for _ in range(2):
        admission.acquire(50, 0.0)
    assert admission.refusal(1, 0.0, Visitor("told")) is not None
    admission.release(50, 1.0)
    assert admission.refusal(10, 1.0, Visitor("newcomer")) is not None


def test_the_only_place_is_kept_from_when_it_would_not_fall_free_again() -> None:
    admission, told, newcomer = Admission(QueueLimits(1, 100)), Visitor("told"), Visitor("newcomer")
    for second in range(20):
        admission.acquire(1, second)
        admission.release(1, second + 0.8)
    admission.acquire(1, 20.0)
    refusal = admission.refusal(1, 20.0, told)
    assert refusal is not None
    assert refusal.retry_after is not None
    due = 20.0 + refusal.retry_after
    admission.release(1, 20.1)
    assert admission.refusal(1, due - 0.9, newcomer) is None
    assert admission.refusal(1, due - 0.7, newcomer) is not None


def test_several_places_are_held_a_little_while_before_however_fast_they_fall_free() -> None:
    admission, told, newcomer = Admission(QueueLimits(4, 100)), Visitor("told"), Visitor("newcomer")
    for _ in range(3):
        admission.acquire(1, 0.0)
    for hundredth in range(300):
        admission.acquire(1, hundredth / 100)
        admission.release(1, (hundredth + 1) / 100)
    admission.acquire(1, 3.0)
    refusal = admission.refusal(1, 3.0, told)
    assert refusal is not None
    assert refusal.retry_after is not None
    admission.release(1, 3.0)
    due = 3.0 + refusal.retry_after
    assert admission.refusal(1, due - 2 * GATHERED_S, newcomer) is None
    assert admission.refusal(1, due - 0.9 * GATHERED_S, newcomer) is not None


@pytest.mark.parametrize(
    ("limits", "each"), [(QueueLimits(10, 10**6), 1), (QueueLimits(1000, 100), 10)]
)
def test_a_promise_makes_no_room_where_there_is_none(limits: QueueLimits, each: int) -> None:
    admission, visitor, now = Admission(limits), Visitor("told"), 0.0
    for _ in range(10):
        admission.acquire(each, now)
    for _ in range(3):
        refusal = admission.refusal(each, now, visitor)
        assert refusal is not None
        assert refusal.retry_after is not None
        now += refusal.retry_after
    admission.release(each, now)
    admission.acquire(each, now, visitor)
    assert (admission.requests, admission.nbytes) == (10, 10 * each)


def test_a_count_that_bounds_nothing_is_not_told() -> None:
    admission = Admission(QueueLimits(requests=100, nbytes=100), "bodies")
    admission.acquire(100, 0.0)
    with pytest.raises(QueueFull, match=r"1 bodies with 100 bytes wait; the queue takes 100 bytes"):
        admission.acquire(1, 0.0)


def test_retry_after_has_bounds() -> None:
    admission = Admission(QueueLimits(requests=1, nbytes=100))
    admission.acquire(1, 0.0)
    assert refused_until(admission, 0.0) == RETRY_MIN_S
    admission.release(1, 1000.0)
    admission.acquire(1, 1000.0)
    assert refused_until(admission, 2000.0) == RETRY_MAX_S


def test_idle_time_does_not_slow_the_measured_rate() -> None:
    rate = DrainRate()
    rate.advance(0.0, busy=False)
    for tick in range(1, 101):
        rate.advance(tick / 100, busy=True)
        rate.drained(1000)
    before = rate.time_for(50, 50_000)
    rate.advance(3600.0, busy=False)
    assert rate.time_for(50, 50_000) == before == pytest.approx(0.5, rel=0.1)


def test_what_is_reserved_is_no_work() -> None:
    """Nobody is told to wait for bodies that are still to come, nor do they make the workers look slow."""
    admission = Admission(QueueLimits(requests=10, nbytes=100))
    for _ in range(3):
        admission.acquire(10, 0.0)
        admission.release(10, 1.0)
    admission.acquire(80, 1.0)
    before = admission.refusal(30, 1.0, NOBODY)
    admission.reserve(10, 1.0, NOBODY)
    admission.release(80, 9.0)
    admission.acquire(85, 90.0)  # it was reserved for long, and nobody had anything to work on
    after = admission.refusal(30, 90.0, NOBODY)
    assert before is not None
    assert after is not None
    assert after.retry_after is not None
    assert (admission.reserving, admission.reserved) == (1, 10)
    assert after.retry_after < 60


def test_who_has_the_only_place_gets_the_bytes_that_it_turns_out_to_need() -> None:
    admission = Admission(QueueLimits(requests=10, nbytes=100))
    admission.reserve(20, 0.0, NOBODY)
    for number in range(3):
        told = Visitor(f"told-{number}")
        assert admission.refusal(90, 0.0, told) is not None
        admission._promises.note(told, 0.0, 0.5)
    admission.unreserve(20)
    assert admission.refusal(95, 0.5, Visitor("new")) is not None
    admission.acquire(95, 0.5, reserved=20)
    assert admission.nbytes == 95


def test_places_that_are_reserved_are_none_that_drain() -> None:
    admission = Admission(QueueLimits(requests=20, nbytes=1 << 30))
    for _ in range(10):
        admission.acquire(1, 0.0)
        admission.reserve(1 << 20, 0.0, NOBODY)
    for tick in range(1, 101):  # one a second
        admission.release(1, tick)
        admission.acquire(1, tick)
    assert refused_until(admission, 100.0) == pytest.approx(10.0, rel=0.1)


def test_promises_of_long_ago_are_forgotten_when_nobody_is_there_any_more() -> None:
    admission = Admission(QueueLimits(1, 100))
    admission.acquire(1, 0.0)
    for number in range(3):
        with pytest.raises(QueueFull):
            admission.acquire(1, 0.0, Visitor(f"caller {number}", number))
    admission.release(1, 1.0)
    assert not admission.at_rest(1.0)
    admission.acquire(1, 1000.0, Visitor("another", 9))
    admission.release(1, 1000.0)
    assert not admission._promises
