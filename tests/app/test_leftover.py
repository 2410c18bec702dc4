"""What is left of a refused body, and whether its connection ends with it."""

from __future__ import annotations

import math

import pytest

from app.leftover import LONG_REST, MOST_REST, awaits_word, ends_connection, is_endless, rest
from app.record import Record


def record_with(headers: dict[bytes, bytes], bytes_in: int = 0, *, unread: bool = True) -> Record:
    return Record("id", headers, 0.0, bytes_in=bytes_in, unread=unread)


def of_length(length: int, bytes_in: int = 0) -> Record:
    return record_with({b"content-length": str(length).encode()}, bytes_in)


def test_what_has_not_been_read_is_left() -> None:
    assert rest(of_length(1000)) == 1000
    assert rest(of_length(1000, 400)) == 600
    assert rest(record_with({b"transfer-encoding": b"chunked"}, 400)) == math.inf
    assert rest(record_with({b"content-length": b"1000"}, unread=False)) == 0


def test_more_than_is_thrown_away_has_no_end() -> None:
    assert not is_endless(of_length(MOST_REST))
    assert is_endless(of_length(MOST_REST + 1))
    assert not is_endless(of_length(MOST_REST + 1, 1))
    assert is_endless(record_with({b"transfer-encoding": b"chunked"}))


def test_who_may_wait_for_a_word_may_send_no_body_at_all() -> None:
    waiting = {b"content-length": b"10", b"expect": b"100-Continue"}
    assert awaits_word(record_with(waiting))
    assert is_endless(record_with(waiting))
    assert not awaits_word(record_with(waiting, 1))
    assert not awaits_word(record_with(waiting, unread=False))
    assert not awaits_word(record_with({b"content-length": b"10", b"expect": b"else"}))


@pytest.mark.parametrize("status", [401, 404, 413, 429, 503])
@pytest.mark.parametrize("named", [True, False])
def test_a_long_rest_ends_the_connection_unless_somebody_is_known_by_it(
    status: int, named: bool
) -> None:
    assert not ends_connection(LONG_REST - 1, status, named=named)
    known_by_it = status in (429, 503) and not named
    assert ends_connection(LONG_REST, status, named=named) == (not known_by_it)
