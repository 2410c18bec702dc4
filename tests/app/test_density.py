"""How close to each other promised times may lie."""

from __future__ import annotations

import pytest

from app.density import AT_ONCE, LEAST_OBEDIENCE, PROMISED, SLOTS_PER_S, density

LONGEST_S = 60


def test_a_second_is_promised_in_part_and_a_part_of_it_as_the_queue_can_take() -> None:
    most = density(per_s=100.0, room=30.0, obedience=1.0, longest_s=LONGEST_S)
    assert most.in_second == PROMISED * 100
    assert most.in_slot == AT_ONCE * 30
    assert most.at_once == 30
    assert (most.beside, most.apart) == (0, 0)


def test_where_more_falls_free_than_the_queue_holds_its_parts_are_what_is_bounded() -> None:
    assert density(1e6, 30.0, 1.0, LONGEST_S).in_slot == 30


def test_where_few_come_back_more_is_promised() -> None:
    most, half = (density(100.0, 30.0, part, LONGEST_S) for part in (1.0, 0.5))
    assert half[:3] == tuple(2 * each for each in most[:3])
    least = density(100.0, 30.0, 0.0, LONGEST_S)
    assert least.in_second == pytest.approx(PROMISED * 100 / LEAST_OBEDIENCE)


@pytest.mark.parametrize(("per_s", "beside", "apart"), [(20.0, 1, 0), (4.0, 9, 0), (0.5, 19, 4)])
def test_where_few_fall_free_promises_are_apart(per_s: float, beside: int, apart: int) -> None:
    most = density(per_s, 1.0, 1.0, LONGEST_S)
    assert (most.beside, most.apart) == (beside, apart)
    assert most.in_slot == most.at_once == 1
    assert beside < SLOTS_PER_S


def test_promises_are_never_further_apart_than_the_longest_wait() -> None:
    assert density(1e-9, 1.0, 1.0, LONGEST_S).apart == LONGEST_S
