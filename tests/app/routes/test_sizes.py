"""What the tensors of a large body are expected to come to."""

from __future__ import annotations

import pytest

from app.record import Record
from app.routes.sizes import CAPACITY, Sizes


def record(operation: str = "conv", action: str = "forward") -> Record:
    made = Record("id", {}, 0.0)
    made.operation, made.action = operation, action
    return made


def test_a_body_is_expected_to_be_as_the_last_one_like_it() -> None:
    sizes = Sizes()
    assert sizes.expected(record(), 1000) == 1000
    for nbytes in (3000, 2000):
        sizes.remember(record(), 1000, nbytes)
        assert sizes.expected(record(), 1000) == nbytes


@pytest.mark.parametrize(
    ("operation", "action", "length"),
    [("max_pool", "forward", 1000), ("conv", "backward", 1000), ("conv", "forward", 1001)],
)
def test_what_is_unlike_it_is_not(operation: str, action: str, length: int) -> None:
    sizes = Sizes()
    sizes.remember(record(), 1000, 5000)
    assert sizes.expected(record(operation, action), length) == length


def test_it_forgets_before_it_grows() -> None:
    sizes = Sizes()
    for length in range(CAPACITY):
        sizes.remember(record(), length, 5000)
    sizes.remember(record(), 0, 6000)
    assert sizes.expected(record(), 1) == 5000
    sizes.remember(record(), CAPACITY, 7000)
    assert sizes.expected(record(), 1) == 1
    assert sizes.expected(record(), CAPACITY) == 7000
