"""Callers get what they may have, and are told when there is more."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import RateLimited
from app.promises import CAPACITY, LATE_S, LONGEST_S
from app.quotas import FEW_CALLERS, MOST_CALLERS, Quotas
from app.visitor import Visitor
from tests.app.limits import quota_limits


def refused(quotas: Quotas, caller: str, now: float, name: str = "") -> float:
    """Seconds after which the caller is to come back; 0 where it was let in."""
    try:
        quotas.enter(caller, now, Visitor(name))
    except RateLimited as error:
        return error.retry_after or -1.0
    quotas.leave(caller, now)
    return 0.0


def remembered(quotas: Quotas) -> int:
    """How many callers are."""
    return len(quotas._whole.keys() | quotas._told.keys() | quotas._under_way.keys())


def test_without_limits_everybody_is_let_in_and_forgotten() -> None:
    quotas = Quotas(quota_limits())
    assert not any(refused(quotas, "a", 0.0) for _ in range(1000))
    assert remembered(quotas) == 0


def test_a_burst_and_then_the_rate() -> None:
    quotas = Quotas(quota_limits(rate=4.0, burst=3))
    assert [refused(quotas, "a", 10.0) for _ in range(4)] == [0.0, 0.0, 0.0, 1.0]
    assert refused(quotas, "a", 10.2) == 1.0
    assert refused(quotas, "a", 10.25) == 0.0
    assert refused(quotas, "b", 10.25) == 0.0


@given(
    st.floats(0.1, 1000),
    st.integers(1, 20),
    st.lists(st.floats(0, 0.3), min_size=1, max_size=80),
)
def test_who_comes_back_when_told_is_let_in_and_nobody_gets_more(
    rate: float, burst: int, pauses: list[float]
) -> None:
    quotas = Quotas(quota_limits(rate=rate, burst=burst))
    now, let_in = 0.0, []
    for pause in pauses:
        now += pause
        if wait := refused(quotas, "a", now):
            now += wait
            assert refused(quotas, "a", now) == 0.0
        let_in.append(now)
    for first in range(len(let_in)):
        for last in range(first, len(let_in)):
            most = burst + rate * (let_in[last] - let_in[first])
            assert last - first + 1 <= most * 1.01 + 0.01


@pytest.mark.parametrize(("rate", "burst"), [(10.0, 20), (10.0, 5), (2.0, 2), (3.0, 1), (0.05, 1)])
def test_a_crowd_that_is_refused_at_once_is_told_times_at_which_all_are_let_in(
    rate: float, burst: int
) -> None:
    quotas = Quotas(quota_limits(rate=rate, burst=burst))
    waits = [refused(quotas, "a", 10.0) for _ in range(burst + min(20, round(LONGEST_S * rate)))]
    assert waits == sorted(waits)
    assert refused(quotas, "b", 10.0) == 0.0
    for wait in waits[burst:]:
        assert wait >= 1.0
        assert refused(quotas, "a", 10.0 + wait) == 0.0


@pytest.mark.parametrize(("rate", "burst"), [(10.0, 20), (10.0, 5), (2.0, 2), (1.0, 1), (0.2, 1)])
def test_who_was_told_to_come_is_let_in_whoever_comes_uninvited(rate: float, burst: int) -> None:
    quotas = Quotas(quota_limits(rate=rate, burst=burst))
    pace = 0.3 / rate
    told: list[tuple[float, str]] = []
    let_in = 0
    for number in range(round(60 * rate)):
        now = number * pace
        while told and told[0][0] <= now:
            due, name = heapq.heappop(told)
            assert refused(quotas, "a", due, name) == 0.0
            let_in += 1
        if wait := refused(quotas, "a", now, str(number)):
            heapq.heappush(told, (now + wait, str(number)))
        else:
            let_in += 1
    assert let_in >= 0.7 * rate * now


def test_who_comes_under_another_name_loses_no_more_than_a_few_turns() -> None:
    """What is kept for somebody who is not known again is for nobody."""
    quotas = Quotas(quota_limits(rate=1.0))
    now, let_in = 0.0, 0
    for number in range(200):
        wait = refused(quotas, "a", now, str(number))
        let_in += not wait
        now += wait
    assert let_in > 0.8 * now


def test_nobody_is_told_to_come_after_a_minute_unless_there_is_nothing_before() -> None:
    quick, slow = Quotas(quota_limits(rate=1.0)), Quotas(quota_limits(rate=0.01))
    assert max(refused(quick, "a", 0.0) for _ in range(1000)) == LONGEST_S
    assert [refused(slow, "a", 0.0) for _ in range(4)] == [0.0, 100.0, 100.0, 100.0]


def test_only_so_many_at_once() -> None:
    quotas = Quotas(quota_limits(at_once=2))
    quotas.enter("a", 0.0)
    quotas.enter("a", 0.0)
    with pytest.raises(RateLimited):
        quotas.enter("a", 0.0)
    quotas.enter("b", 0.0)
    quotas.leave("a", 0.0)
    quotas.enter("a", 0.0)
    for caller in ("a", "a", "b"):
        quotas.leave(caller, 0.0)
    quotas.enter("a", 0.0)
    quotas.enter("a", 0.0)


def test_who_has_too_many_at_once_is_told_when_its_own_are_answered() -> None:
    """And finds a place then, whoever of it comes uninvited; other callers' answers do not count."""
    quotas = Quotas(quota_limits(at_once=2))

    def enter(name: str, now: float) -> float:
        try:
            quotas.enter("a", now, Visitor(name))
        except RateLimited as error:
            return error.retry_after or -1.0
        return 0.0

    assert [enter(name, 0.0) for name in ("1", "2")] == [0.0, 0.0]
    for tenth in range(10):
        assert refused(quotas, "b", tenth / 10) == 0.0
    for second in (4.0, 8.0):  # each takes eight seconds: one is answered in four
        quotas.leave("a", second)
        assert enter("more", second) == 0.0
    told = enter("told", 8.0)
    assert 4.0 <= told <= 12.0
    quotas.leave("a", 8.0 + told - 0.5)
    assert enter("uninvited", 8.0 + told - 0.4) > 0.0
    assert enter("told", 8.0 + told) == 0.0


def test_who_has_nothing_under_way_and_is_not_waited_for_is_forgotten() -> None:
    quotas = Quotas(quota_limits(at_once=1))
    quotas.enter("still there", 0.0)
    for number in range(FEW_CALLERS):
        now, caller = number / 10, f"caller {number}"
        quotas.enter(caller, now)
        assert refused(quotas, caller, now, "again") > 0.0
        quotas.leave(caller, now)
    assert remembered(quotas) < 10 * LONGEST_S
    assert refused(quotas, "still there", now) > 0.0


def test_of_too_many_who_may_come_again_nobody_is_remembered() -> None:
    quotas = Quotas(quota_limits(at_once=1))
    for number in range(MOST_CALLERS + 1):
        quotas.enter(str(number), 0.0)
        refused(quotas, str(number), 0.0, "again")
        quotas.leave(str(number), 0.0)
        assert len(quotas._under_way) <= MOST_CALLERS
    assert remembered(quotas) <= 1
    assert quotas._capacity.left >= CAPACITY - 1


def test_callers_at_rest_are_forgotten() -> None:
    quotas = Quotas(quota_limits(rate=10.0))
    for number in range(10 * FEW_CALLERS):
        refused(quotas, f"caller {number}", number / 100)
        refused(quotas, f"caller {number}", number / 100, "again")
    assert remembered(quotas) <= FEW_CALLERS + 1
    assert len(quotas._promises) <= FEW_CALLERS + 1
    open_ = sum(map(len, quotas._promises.values()))
    assert quotas._capacity.left == CAPACITY - open_ < CAPACITY


def test_no_more_callers_are_remembered_than_stated() -> None:
    quotas = Quotas(quota_limits(rate=1e-3, burst=1))
    for number in range(2 * MOST_CALLERS):
        assert refused(quotas, str(number), number / 1000) == 0.0
        assert refused(quotas, str(number), number / 1000, "again") > 0.0
        assert len(quotas._whole) <= MOST_CALLERS
        if number % 64 == 0:
            assert remembered(quotas) <= MOST_CALLERS + 1
    # Those that were let in last have the longest to wait.
    assert refused(quotas, str(2 * MOST_CALLERS - 1), 2 * MOST_CALLERS / 1000) > 0.0
    assert refused(quotas, "0", 2 * MOST_CALLERS / 1000) == 0.0


@pytest.mark.parametrize("limits", [{"rate": 10.0}, {"at_once": 1}])
def test_promises_of_all_callers_together_are_bounded(limits: dict[str, Any]) -> None:
    """None takes the room of others for longer than it is waited for."""
    quotas = Quotas(quota_limits(**limits))

    def fill(caller: str, now: float) -> int:
        before = quotas._capacity.left
        quotas.enter(caller, now)
        for number in range(30):
            with pytest.raises(RateLimited):
                quotas.enter(caller, now, Visitor(str(number), 1, caller))
        quotas.leave(caller, now)
        return before - quotas._capacity.left

    quotas._capacity.left = 100
    assert [fill(caller, 0.0) for caller in "abcdef"] == [30, 30, 20, 10, 5, 3]
    fill("a", 1.0 + LONGEST_S + LATE_S)
    assert quotas._capacity.left == 70


def test_who_names_nothing_and_comes_over_another_connection_is_let_in_when_told() -> None:
    def ask(quotas: Quotas, now: float, connection: int) -> float:
        try:
            quotas.enter("key", now, Visitor(connection=connection, address="of its network"))
        except RateLimited as error:
            return error.retry_after or -1.0
        return 0.0

    by_rate = Quotas(quota_limits(rate=0.5, burst=3))
    assert [ask(by_rate, 10.0, number) for number in (1, 2, 3, 4)] == [0.0, 0.0, 0.0, 2.0]
    assert ask(by_rate, 12.0, 5) == 0.0
    at_once = Quotas(quota_limits(at_once=2))
    assert [ask(at_once, 10.0, number) for number in (1, 2, 3)] == [0.0, 0.0, 1.0]
    at_once.leave("key", 10.5)
    assert ask(at_once, 11.0, 4) == 0.0


def test_who_is_refused_for_its_rate_takes_nothing_that_was_promised_for_its_number() -> None:
    """Another of the same caller's, over another connection, may still call it in."""
    quotas = Quotas(quota_limits(rate=1.0, burst=3, at_once=2))
    here = [Visitor(connection=number, address="of its network") for number in range(1, 9)]
    quotas.enter("key", 10.0, here[0])
    quotas.enter("key", 10.0, here[1])
    with pytest.raises(RateLimited):
        quotas.enter("key", 10.0, here[2])
    quotas.leave("key", 10.5)
    permits = quotas._under_way["key"]
    (promise,) = permits._promises._due
    assert isinstance(promise, int)
    assert promise < 0
    quotas._whole["key"] = 20.0
    with pytest.raises(RateLimited):
        quotas.enter("key", 11.0, here[3])
    assert [key for key in permits._promises._due if isinstance(key, int) and key > 0] == []
    assert permits.refusal(0, 11.0, here[4]._replace(address="key")) is None


def test_who_is_told_nothing_takes_nothing_that_was_promised_for_the_rate() -> None:
    quotas = Quotas(quota_limits(rate=1.0, burst=1))
    here = [Visitor(connection=number, address="of its network") for number in range(1, 9)]
    quotas.enter("key", 10.0, here[0])
    with pytest.raises(RateLimited):
        quotas.enter("key", 10.0, here[1])
    promises = quotas._promises["key"]
    quotas._whole["key"], quotas._told["key"] = 20.0, 500.0
    with pytest.raises(RateLimited):
        quotas.enter("key", 11.0, here[2])
    assert promises.claim(here[3]._replace(address="key"), 11.0) is not None
