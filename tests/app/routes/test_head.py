"""What a request's head says: until when an answer is of use."""

from __future__ import annotations

import pytest

from app.errors import InvalidHeader
from app.record import Record
from app.routes.head import deadline_of, passed
from app.settings import Settings

STARTED = 1000.0
SETTINGS = Settings(max_deadline_ms=50)


def record(given: bytes | None) -> Record:
    headers = {} if given is None else {b"x-deadline-ms": given}
    return Record("id", headers, STARTED)


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [(b"0", 0), (b"49", 49), (b"50", 50), (b"51", 50), (b"600000", 50), (b"9" * 100, 50)],
)
def test_a_deadline_counts_from_the_first_byte_and_is_no_later_than_the_latest(
    given: bytes, milliseconds: int
) -> None:
    assert deadline_of(record(given), SETTINGS) == STARTED + milliseconds / 1e3


@pytest.mark.parametrize(("default", "deadline"), [(0, None), (20, 0.02), (70, 0.05)])
def test_who_names_none_has_the_default(default: int, deadline: float | None) -> None:
    settings = Settings(max_deadline_ms=50, default_deadline_ms=default)
    expected = None if deadline is None else STARTED + deadline
    assert deadline_of(record(None), settings) == expected


@pytest.mark.parametrize("given", [b"", b"-1", b"1.5", b"1e3", b"soon", b"9" * 101, b"\xe9"])
def test_no_other_text_is_a_deadline(given: bytes) -> None:
    with pytest.raises(InvalidHeader) as refused:
        deadline_of(record(given), SETTINGS)
    (issue,) = refused.value.issues
    assert issue.loc == ("header", "X-Deadline-Ms")
    assert issue.got == given.decode("latin-1")


def test_a_deadline_that_has_passed_names_the_header_where_that_set_it() -> None:
    (issue,) = passed(record(b"50"), SETTINGS).issues
    assert (issue.loc, issue.got) == (("header", "X-Deadline-Ms"), "50")
    assert "brought forward" not in issue.msg
    assert not passed(record(None), SETTINGS).issues


def test_a_deadline_that_was_brought_forward_is_told_so() -> None:
    (issue,) = passed(record(b"51"), SETTINGS).issues
    assert issue.got == "51"
    assert issue.msg == "passed before the answer was ready, brought forward to 50 ms"
