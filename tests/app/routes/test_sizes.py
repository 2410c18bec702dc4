"""What the tensors of a large body are expected to come to."""

from __future__ import annotations

import pytest

from app.record import Record
from app.routes.body import IN_PLACE_BYTES
from app.routes.sizes import CAPACITY, Sizes

LENGTH = IN_PLACE_BYTES


def record(operation: str = "conv", action: str = "forward") -> Record:
    made = Record("id", {}, 0.0)
    made.operation, made.action = operation, action
    return made


def test_a_body_is_expected_to_be_as_the_last_one_like_it_that_was_computed() -> None:
    sizes = Sizes()
    assert sizes.expected(record(), "one", LENGTH) == LENGTH
    for nbytes in (3 * LENGTH, 2 * LENGTH):
        sizes.computed(record(), "one", LENGTH, nbytes)
        for caller in ("one", "other"):
            assert sizes.expected(record(), caller, LENGTH) == nbytes


def test_a_caller_s_own_come_first() -> None:
    sizes = Sizes()
    sizes.computed(record(), "one", LENGTH, 2 * LENGTH)
    sizes.computed(record(), "greedy", LENGTH, 9 * LENGTH)
    assert sizes.expected(record(), "one", LENGTH) == 2 * LENGTH
    assert sizes.expected(record(), "new", LENGTH) == 9 * LENGTH


def test_what_is_refused_is_expected_of_its_caller_until_one_like_it_is_computed() -> None:
    sizes = Sizes()
    sizes.asked(record(), "greedy", LENGTH, 9 * LENGTH)
    assert sizes.expected(record(), "greedy", LENGTH) == 9 * LENGTH
    assert sizes.expected(record(), "one", LENGTH) == LENGTH
    sizes.computed(record(), "greedy", LENGTH, 2 * LENGTH)
    for caller in ("greedy", "new"):
        sizes.asked(record(), caller, LENGTH, 9 * LENGTH)
        assert sizes.expected(record(), caller, LENGTH) == 2 * LENGTH


@pytest.mark.parametrize(
    ("operation", "action", "length"),
    [
        ("max_pool", "forward", LENGTH),
        ("conv", "backward", LENGTH),
        ("conv", "forward", LENGTH + 1),
    ],
)
def test_what_is_unlike_it_is_not(operation: str, action: str, length: int) -> None:
    sizes = Sizes()
    sizes.asked(record(), "one", LENGTH, 5 * LENGTH)
    sizes.computed(record(), "one", LENGTH, 5 * LENGTH)
    assert sizes.expected(record(operation, action), "one", length) == length


def test_small_ones_are_not_remembered() -> None:
    sizes = Sizes()
    sizes.asked(record(), "one", LENGTH - 1, 5 * LENGTH)
    sizes.computed(record(), "one", LENGTH - 1, 5 * LENGTH)
    assert sizes.expected(record(), "one", LENGTH - 1) == LENGTH - 1


@pytest.mark.parametrize("own", [True, False])
def test_it_forgets_before_it_grows(*, own: bool) -> None:
    sizes = Sizes()

    def remember(length: int, nbytes: int) -> None:
        if own:
            sizes.asked(record(), "one", LENGTH + length, nbytes)
        else:
            sizes.computed(record(), "one", LENGTH + length, nbytes)

    for length in range(CAPACITY):
        remember(length, 5000)
    remember(0, 6000)
    assert sizes.expected(record(), "one", LENGTH + 1) == 5000
    remember(CAPACITY, 7000)
    assert sizes.expected(record(), "one", LENGTH + 1) == LENGTH + 1
    assert sizes.expected(record(), "one", LENGTH + CAPACITY) == 7000
