"""A head is as long as what came of it, whatever the parser tells of that."""

from __future__ import annotations

import pytest

from app.errors import HeadersTooLarge
from app.headsize import HeadSize


def test_what_the_parser_passes_over_counts() -> None:
    size = HeadSize(10)
    size.give(6)
    size.begin()
    size.tell(2)
    size.check()
    size.give(4)
    size.check()
    size.give(1)
    with pytest.raises(HeadersTooLarge):
        size.check()


def test_no_byte_counts_twice() -> None:
    size = HeadSize(10)
    size.begin()
    for _ in range(10):
        size.give(1)
        size.check()
    size.tell(10)
    size.check()


def test_a_body_is_no_head_and_the_next_request_begins_anew() -> None:
    size = HeadSize(10)
    size.give(100)
    size.begin()
    size.tell(10)
    size.forget_untold()
    size.check()
    size.end()
    size.give(10)
    size.check()
    size.begin()
    size.tell(10)
    with pytest.raises(HeadersTooLarge):
        size.tell(1)


def test_it_is_known_whether_anything_came() -> None:
    size = HeadSize(10)
    assert not size.begun
    size.give(2)
    assert size.begun
    assert size.untold
    size.begin()
    size.tell(2)
    assert size.begun
    assert not size.untold
