"""What workers and those who look after them agree on."""

from __future__ import annotations

import pytest

from app.workers.task import NOT_RUNNING_S, WATCH_S, lost


def test_time_is_lost_only_where_nobody_looked_for_far_too_long() -> None:
    assert lost(WATCH_S) == 0
    assert lost(WATCH_S + NOT_RUNNING_S) == 0
    assert lost(WATCH_S + 4 * NOT_RUNNING_S) == pytest.approx(4 * NOT_RUNNING_S)
