"""What counts as too slow, and what does not count."""

from __future__ import annotations

import pytest

from app.patience import Part, Patience
from app.settings import Settings

SETTINGS = Settings(header_timeout_s=10.0, body_timeout_s=20.0, answer_timeout_s=30.0)


@pytest.fixture
def patience() -> Patience:
    return Patience(SETTINGS)


def overdue(
    patience: Patience, now: float, *, lost: float = 0.0, unsent: int = 0, held: bool = False
) -> str | None:
    return patience.overdue(now, lost, unsent, held=held)


@pytest.mark.parametrize(("part", "limit_s"), [("headers", 10.0), ("body", 20.0)])
def test_a_part_has_its_time(patience: Patience, part: Part, limit_s: float) -> None:
    patience.expect(part, 100.0)
    assert overdue(patience, 100.0 + limit_s) is None
    assert overdue(patience, 100.1 + limit_s) == part
    patience.awaited = None
    assert overdue(patience, 200.0) is None


def test_a_body_has_its_time_from_the_beginning_of_its_request(patience: Patience) -> None:
    patience.expect("headers", 100.0)
    patience.awaited = "body"
    assert overdue(patience, 120.0) is None
    assert overdue(patience, 120.1) == "body"


def test_an_answer_is_taken_as_long_as_it_grows_less(patience: Patience) -> None:
    assert overdue(patience, 100.0, unsent=9) is None
    assert overdue(patience, 130.0, unsent=9) is None
    assert overdue(patience, 130.1, unsent=8) is None
    assert overdue(patience, 160.0, unsent=8) is None
    assert overdue(patience, 160.2, unsent=8) == "answer"
    assert overdue(patience, 160.3) is None
    # Since then there is nothing that could be taken.
    assert overdue(patience, 300.0) is None
    assert overdue(patience, 301.0, unsent=8) is None


def test_time_in_which_we_did_not_run_does_not_count(patience: Patience) -> None:
    patience.expect("headers", 100.0)
    assert overdue(patience, 109.0, unsent=5) is None
    assert overdue(patience, 150.0, unsent=5, lost=41.0) is None
    assert overdue(patience, 151.0, unsent=5) is None
    assert overdue(patience, 151.1, unsent=5) == "headers"
    patience.awaited = None
    assert overdue(patience, 180.0, unsent=5) is None
    assert overdue(patience, 180.1, unsent=5) == "answer"


def test_more_than_has_passed_is_never_taken_off(patience: Patience) -> None:
    patience.expect("headers", 100.0)
    assert overdue(patience, 101.0, lost=50.0) is None
    assert patience.since == 101.0


def test_what_is_not_read_is_not_late(patience: Patience) -> None:
    patience.expect("body", 100.0)
    assert overdue(patience, 150.0, held=True) is None
    assert overdue(patience, 170.0) is None
    assert overdue(patience, 170.1) == "body"


def test_a_request_that_waited_for_us_was_there_all_the_while(patience: Patience) -> None:
    patience.expect("headers", 100.0, 60.0)
    assert patience.arrived == 60.0
    assert overdue(patience, 110.0) is None, "its client may send the rest of it from now on"
    assert overdue(patience, 110.1) == "headers"
    patience.expect("headers", 120.0)
    assert patience.arrived == 120.0
