"""How much others use: read off the counters of the system, less our own."""

from __future__ import annotations

import pytest

from benchmarks.kernels.contention import Moment, busy, others


def test_idle_and_waiting_are_not_busy_and_guests_count_once() -> None:
    stat = "cpu  100 10 20 5000 700 3 4 6 50 5\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
    assert busy(stat) == 100 + 10 + 20 + 3 + 4 + 6


def test_what_others_used_is_the_machines_less_ours() -> None:
    since = Moment(clock=100, own=10, all=500)
    assert others(since, Moment(clock=110, own=22, all=520)) == pytest.approx(0.8)
    assert others(since, Moment(clock=110, own=22, all=511)) == 0


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert others(None, Moment(1, 1, 1)) is None
    assert others(Moment(1, 1, 1), Moment(1, 1, 1)) is None
