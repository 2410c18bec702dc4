"""A remembered head is told as the parser tells it, and whatever could differ is parsed."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from app.heads import (
    BODY_BYTES,
    HEAD_BYTES,
    LONG_WAY,
    MOST_HEADERS,
    MOST_HEADS,
    NO_HEAD,
    Head,
    Heads,
    parted,
)
from tests.app.connecting import Transport, connected

MANY = [b"a:"] * (MOST_HEADERS - 1)
LINE = b"POST /v1/conv/forward?a=%41 HTTP/1.1"
HEADERS = [(b"host", b"x"), (b"content-length", b"3")]


def written(*lines: bytes, first: bytes = LINE, end: bytes = b"\r\n") -> bytes:
    return end.join((first, *lines, b"", b""))


PLAIN = written(b"Host: x", b"Content-Length: 3")


def known(head: bytes, headers: list[tuple[bytes, bytes]]) -> Head | None:
    """The head, if it is remembered after it came twice."""
    heads = Heads()
    for _ in range(2):
        assert heads.find(parted(head)) is None
        heads.remember(parted(head), b"/", headers)
    return parted(head) if heads.find(parted(head)) is not None else None


def test_a_head_is_parted_from_its_id_and_what_follows() -> None:
    fixed = written(b"Host: x", b"Accept: */*")
    with_id = written(b"Host: x", b"x-ReQuest-iD: one!", b"Accept: */*")
    assert parted(fixed + b"POST") == Head(fixed, b"", len(fixed))
    assert parted(with_id + b"rest") == Head(
        fixed, b"one!", len(with_id), len(LINE + b"Host: x") + 2
    )
    assert parted(with_id[:-1]) is NO_HEAD
    assert parted(written(b"X: " + b"y" * HEAD_BYTES)) is NO_HEAD


def test_a_head_is_remembered_once_it_has_come_again() -> None:
    assert known(PLAIN, HEADERS) is not None


@pytest.mark.parametrize("name", sorted(LONG_WAY))
def test_what_asks_for_more_is_parsed(name: bytes) -> None:
    head = written(b"Host: x", b"Content-Length: 3", name + b": a")
    assert known(head, [*HEADERS, (name, b"a")]) is None


@pytest.mark.parametrize(
    ("head", "headers"),
    {
        "closes": (
            written(b"Host: x", b"Content-Length: 3", b"Connection: close"),
            [*HEADERS, (b"connection", b"close")],
        ),
        "no body": (written(b"Host: x"), HEADERS[:1]),
        "an empty body": (
            written(b"Host: x", b"Content-Length: 0"),
            [HEADERS[0], (b"content-length", b"0")],
        ),
        "a large body": (
            written(b"Host: x", b"Content-Length: %d" % (BODY_BYTES + 1)),
            [HEADERS[0], (b"content-length", b"%d" % (BODY_BYTES + 1))],
        ),
        "many headers": (
            written(b"Host: x", b"Content-Length: 3", *MANY),
            [*HEADERS, *[(b"a", b"")] * len(MANY)],
        ),
        "another method": (
            written(b"Host: x", b"Content-Length: 3", first=b"PUT / HTTP/1.1"),
            HEADERS,
        ),
        "another version": (
            written(b"Host: x", b"Content-Length: 3", first=b"POST / HTTP/1.0"),
            HEADERS,
        ),
        "an id in another form": (
            written(b"Host: x", b"Content-Length: 3", b"X-Request-Id:one"),
            [*HEADERS, (b"x-request-id", b"one")],
        ),
        "two ids": (
            written(b"Host: x", b"X-Request-Id: one", b"Content-Length: 3", b"X-Request-Id: two"),
            [HEADERS[0], (b"x-request-id", b"one"), HEADERS[1], (b"x-request-id", b"two")],
        ),
        "ends before": (PLAIN.replace(b"\r\n\r\n", b"\n\n") + b"body\r\n\r\n", HEADERS),
        "a line that goes on": (written(b"Host: x", b" y", b"Content-Length: 3"), HEADERS),
        "cut short": (PLAIN[:-2], HEADERS),
        "begins with an empty line": (b"\r\n" + PLAIN, HEADERS),
    }.values(),
)
def test_what_could_say_something_else_is_parsed(
    head: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    assert known(head, headers) is None


def test_a_longer_id_is_parsed_so_that_it_is_counted() -> None:
    heads = Heads()
    for name in (b"a", b"bc"):
        head = written(b"Host: x", b"Content-Length: 3", b"X-Request-Id: " + name)
        heads.remember(parted(head), b"/", [*HEADERS, (b"x-request-id", name)])
    assert heads.find(parted(PLAIN)) is None
    for name, there in ((b"x", True), (b"xy", True), (b"xyz", False)):
        head = written(b"Host: x", b"Content-Length: 3", b"X-Request-Id: " + name)
        assert (heads.find(parted(head)) is not None) == there


def test_no_more_are_remembered_than_stated() -> None:
    heads = Heads()
    for number in range(3 * MOST_HEADS):
        for _ in range(2):
            head = written(b"Host: %d" % number, b"Content-Length: 3")
            heads.remember(parted(head), b"/", [(b"host", b"%d" % number), HEADERS[1]])
        assert len(heads._known) <= MOST_HEADS
        assert len(heads._once) <= MOST_HEADS


# The same as by the parser


class Forgetful(Heads):
    """Remembers nothing."""

    def find(self, head: Head) -> None:  # noqa: ARG002
        return None


Told = list[tuple[Any, ...]]


def talk(data: bytes, cuts: list[int], heads: Heads) -> tuple[Told, list[bytes], bool]:
    """What an application is told, what it answers and whether the connection is closed."""
    told: Told = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        named = {name: scope[name] for name in ("method", "path", "query_string", "http_version")}
        told.append((named, list(scope["headers"]), body))
        if b"slow" in body:
            await asyncio.sleep(0)
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def scenario() -> tuple[list[bytes], bool]:
        connection, transport = connected(app)
        connection.heads = heads
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            if start < end:
                connection.data_received(data[start:end])
            for _ in range(12):
                await asyncio.sleep(0)
        closed = transport.closed
        connection.connection_lost(None)
        return answers(transport), closed

    return told, *asyncio.run(scenario())


def answers(transport: Transport) -> list[bytes]:
    """All that was sent, without ids and times that nobody can know beforehand."""
    lines = re.sub(rb"\b[0-9a-f]{32}\b", b"", b"".join(transport.written)).split(b"\r\n")
    return [line for line in lines if not line.startswith((b"server-timing", b"x-request-id"))]


def asked(body: bytes, *lines: bytes, first: bytes = LINE) -> bytes:
    return written(b"Host: x", b"Content-Length: %d" % len(body), *lines, first=first) + body


REQUESTS = [
    asked(b"one"),
    asked(b"slow"),
    asked(b"an" * 4000),
    asked(b"one", b"X-Request-Id: 1"),
    asked(b"one", b"X-Request-Id: 23456"),
    asked(b"one", b"X-Request-Id: "),
    asked(b"one", b"X-Request-Id: a b"),
    asked(b"POST / HTTP/1.1\r\nHost: y\r\n\r\n"),
    asked(b"one", b"Connection: close"),
    asked(b"one", b"Connection: keep-alive"),
    asked(b"one", b"Connection: upgrade", b"Upgrade: h2c"),
    asked(b"one", first=b"GET /livez HTTP/1.1"),
    asked(b"one").replace(b"\r\n\r\n", b"\n\n"),
    written(b"Host: x", b"Transfer-Encoding: chunked") + b"3\r\none\r\n0\r\n\r\n",
    written(b"Host: x"),
    written(b"Host: x", b"Host: y", b"Content-Length: 3") + b"one",
    b"\r\n" + asked(b"one"),
    asked(b"one", first=b"POST http:// HTTP/1.1"),
    b"nonsense\r\n\r\n",
]


@pytest.fixture(scope="module")
def memory() -> Heads:
    """For which all requests have come twice."""
    heads = Heads()
    for request in 2 * REQUESTS:
        talk(request, [], heads)
    return heads


@settings(max_examples=400, deadline=None)
@given(
    requests=st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=8),
    whole=st.booleans(),
    draw=st.data(),
)
def test_a_connection_is_told_the_same(
    memory: Heads, requests: list[bytes], whole: bool, draw: st.DataObject
) -> None:
    """With a memory and with none; one by one, or cut anywhere."""
    data = b"".join(requests)
    if whole:
        ends = [sum(map(len, requests[:n])) for n in range(1, len(requests))]
    else:
        ends = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=12)))
    assert talk(data, ends, memory) == talk(data, ends, Forgetful())


def test_the_parser_is_not_asked_again() -> None:
    """Else all of this would hold without any memory."""
    heads = Heads()
    for _ in range(2):
        talk(asked(b"one"), [], heads)
    found = []

    class Watched(Heads):
        def find(self, head: Head) -> Any:
            found.append(heads.find(head))
            return found[-1]

    told, sent, closed = talk(asked(b"two"), [], Watched())
    assert [body for *_, body in told] == [b"two"]
    assert found[0] is not None
    assert sent[-1] == b"two"
    assert not closed


def test_what_was_refused_is_not_remembered() -> None:
    """The parser takes such an address, and what splits it does not."""
    heads = Heads()
    for _ in range(2):
        talk(asked(b"one", first=b"POST http:// HTTP/1.1"), [], heads)
    assert not heads._known
