"""How fast the queue drains: a rate that is known, and what changes it."""

from __future__ import annotations

import pytest

from app.draining import RATE_MEMORY_S, DrainRate


def drained(
    rate: DrainRate, per_second: int, seconds: int, start: int = 0, nbytes: int = 100
) -> int:
    """So many requests a second leave, all of them busy ones; returns when that ends."""
    rate.advance(start, busy=False)
    for step in range(1, per_second * seconds + 1):
        rate.advance(start + step / per_second, busy=True)
        rate.drained(nbytes)
    return start + seconds


def test_nothing_is_told_before_anything_was_measured() -> None:
    rate = DrainRate()
    rate.advance(5.0, busy=True)
    assert rate.time_for(1000, 1000) == 0.0


@pytest.mark.parametrize("per_second", [5, 50])
def test_a_steady_rate_is_found_however_short_it_was_seen(per_second: int) -> None:
    for seconds in (2, 60):
        rate = DrainRate()
        drained(rate, per_second, seconds)
        assert rate.time_for(10, 1000) == pytest.approx(10 / per_second, rel=0.05)


@pytest.mark.parametrize("nbytes", [100, 10**8])
def test_twice_as_many_of_the_same_take_twice_as_long(nbytes: int) -> None:
    rate = DrainRate()
    drained(rate, 10, 10, nbytes=nbytes)
    assert rate.time_for(10, 10 * nbytes) == pytest.approx(1.0, rel=0.05)
    assert rate.time_for(20, 20 * nbytes) == pytest.approx(2.0, rel=0.05)


SMALL, LARGE = 80_000, 51_000_000


def test_few_large_ones_after_many_small_ones_are_not_taken_for_as_many_small_ones() -> None:
    """Nor for as many bytes of these: of 80 kB, most is what each takes beside its bytes."""
    rate = DrainRate()
    drained(rate, 1000, 2, nbytes=SMALL)
    by_count, by_bytes = 4 / 1000, 4 * LARGE / (1000 * SMALL)
    assert 10 * by_count < rate.time_for(4, 4 * LARGE) < by_bytes / 2


def test_many_small_ones_after_few_large_ones_are_not_taken_for_as_many_large_ones() -> None:
    rate = DrainRate()
    drained(rate, 10, 10, nbytes=LARGE)
    by_count, by_bytes = 256 / 10, 256 * SMALL / (10 * LARGE)
    assert by_bytes < rate.time_for(256, 256 * SMALL) < by_count / 100


def test_of_bytes_alone_requests_tell_nothing() -> None:
    rate = DrainRate(each=0)
    drained(rate, 10, 10, nbytes=100)
    assert rate.time_for(0, 2000) == rate.time_for(50, 2000) == pytest.approx(2.0, rel=0.05)


def test_time_without_work_is_left_out() -> None:
    rate = DrainRate()
    end = drained(rate, 10, 10)
    before = rate.time_for(10, 0)
    rate.advance(end + 3600, busy=False)
    assert rate.time_for(10, 0) == before


def test_a_rate_of_long_ago_is_forgotten() -> None:
    rate = DrainRate()
    end = drained(rate, 100, 60)
    drained(rate, 10, int(5 * RATE_MEMORY_S), start=end)
    assert rate.time_for(10, 0) == pytest.approx(1.0, rel=0.1)
