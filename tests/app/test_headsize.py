"""A head is as long as what came of it, whatever the parser tells of that, and has few fields."""

from __future__ import annotations

import json

import pytest
from starlette.types import Receive, Scope, Send

from app.edge import record_of
from app.errors import HeadersTooLarge
from app.headsize import MOST_FIELDS, HeadSize
from tests.app.connecting import answers

POST = b"POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n"
FIELDS = 2  # that it has


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


def heard(*pieces: bytes) -> tuple[list[int], bytes]:
    """How many headers each request has that the application is asked, and what the client reads."""
    asked: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(len(scope["headers"]))
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    read = answers(app, *pieces)
    return asked, read


@pytest.mark.parametrize("trailers", [0, 100])
@pytest.mark.parametrize("over", [False, True])
def test_fields_are_bounded_while_they_come(trailers: int, over: bool) -> None:
    """No head is whole here that has too many, nor are trailers."""
    headers = MOST_FIELDS - FIELDS - trailers
    fields, end = b"a:\r\n", b"b" if over else b"\r\n"
    head = POST + headers * fields
    sent = head + b"\r\n1\r\nx\r\n0\r\n" + trailers * fields if trailers else head
    # The parser tells of a field when the next begins.
    sent += fields + end if over else end + (b"" if trailers else b"0\r\n\r\n")
    asked, read = heard(sent)
    assert asked == ([] if over and not trailers else [MOST_FIELDS - trailers])
    assert read.startswith(b"HTTP/1.1 %d " % (431 if over else 200))
    if over:
        problem = json.loads(read.partition(b"\r\n\r\n")[2])
        assert problem["detail"].endswith(f"more than max_header_fields, {MOST_FIELDS}.")
        assert problem["errors"][0]["expected"] == f"at most {MOST_FIELDS}, with the trailers"


def test_each_request_has_fields_of_its_own() -> None:
    each = POST + (MOST_FIELDS - FIELDS - 1) * b"a:\r\n" + b"\r\n0\r\nb:\r\n\r\n"
    assert heard(each * 2, each) == ([MOST_FIELDS - 1] * 3, heard(each)[1] * 3)


def test_the_values_of_a_header_that_comes_again_are_joined_in_their_order() -> None:
    headers = [(b"a", b"1"), (b"b", b"2"), (b"a", b""), (b"a", b"3")]
    record = record_of({"headers": headers, "method": "GET", "path": "/"})
    assert record.headers == {b"a": b"1, , 3", b"b": b"2"}
