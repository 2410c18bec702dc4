"""What is refused before it is whole is answered as everything else is."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
from starlette.types import Receive, Scope, Send

from app.edge import RECORD, ClientGone, Edge, record_of
from app.errors import RateLimited
from app.lifecycle import Lifecycle
from app.options import load
from app.record import Record
from app.telemetry import Telemetry
from tests.app.connecting import Transport, connected

ORIGIN = b"https://page.example"
OWN = b"X-Request-Id: q2\r\nOrigin: " + ORIGIN + b"\r\n"
ASKING = b"POST / HTTP/1.1\r\nHost: x\r\n" + OWN + b"Accept: */*\r\n"
"""The parser tells of a header once the next one, or the end of all, has come."""

GOOD = b"GET /good HTTP/1.1\r\nHost: x\r\nX-Request-Id: good\r\nOrigin: " + ORIGIN + b"\r\n\r\n"

PIECE = 1500
"""Bytes that come at once."""

REFUSED = {
    "no host": (400, b"GET /livez HTTP/1.1\r\n" + OWN + b"\r\n"),
    "two hosts": (400, ASKING + b"Host: y\r\n\r\n"),
    "another coding": (400, ASKING + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    "no length": (400, ASKING + b"Content-Length: x\r\n\r\n"),
    "no header": (400, ASKING + b"no header\r\n\r\n"),
    "a broken body": (400, ASKING + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n"),
    "long headers": (431, ASKING + b"X-Long: " + b"a" * 2048 + b"\r\n\r\n"),
    "a header without end": (431, ASKING + b"X-Long: " + b"a" * 4096),
    "empty lines": (431, b"\r\n" * 300 + ASKING + b"X-Long: " + b"a" * 700),
    "blanks": (431, ASKING + 2 * (b"X:" + b" " * 500 + b"a\r\n")),
    "long trailers": (
        431,
        ASKING + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Long: " + b"a" * 2048 + b"\r\n\r\n",
    ),
    "half a head": (408, ASKING),
    "half a body": (408, ASKING + b"Content-Length: 5\r\n\r\n{"),
}


DATE = (b"date", b"Wed, 25 Nov 2026 03:34:46 GMT")


class Answer:
    """A refusal as it was written, once the server has hung up.

    Attributes:
        told: what telemetry was told of, if anything.
    """

    def __init__(self, transport: Transport, told: list[Record] | None = None) -> None:
        self.told = told
        *_, written, end = transport.written
        assert end == b"", "it goes on"
        head, _, self.body = written.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        self.status = int(status.split()[1])
        pairs = [line.lower().split(": ", 1) for line in lines]
        self.headers = dict(pairs)
        assert len(pairs) == len(self.headers), "one header twice"


async def serving(scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers `GOOD` alone."""
    if scope["path"] != "/good":
        await asyncio.Event().wait()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body"})


def told_to(telemetry: Telemetry) -> list[Record]:
    """What telemetry is told of from now on."""
    told: list[Record] = []
    telemetry.request_done = told.append  # type: ignore[assignment, method-assign]
    return told


def refused(*data: bytes) -> Answer:
    """The refusal of what is sent, all of it or, after some time, for what has not come."""

    async def scenario() -> Answer:
        origins = (ORIGIN.decode(),)
        connection, transport = connected(serving, cors_origins=origins, max_header_bytes=1024)
        connection.server_state.default_headers = [DATE]
        told = told_to(connection.telemetry)
        for each in data:
            for start in range(0, len(each), PIECE):
                connection.data_received(each[start : start + PIECE])
            await asyncio.sleep(0.01)
        if not transport.written or transport.written[-1]:
            connection.expire(math.inf)
        return Answer(transport, told)

    return asyncio.run(scenario())


@pytest.mark.parametrize(("status", "data"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("before", [(), (GOOD,)], ids=["the first", "after another"])
def test_a_refusal_has_the_requests_id_and_can_be_read_by_its_page(
    before: tuple[bytes, ...], status: int, data: bytes
) -> None:
    answer = refused(*before, data)
    assert answer.status == status
    assert answer.headers["x-request-id"] == json.loads(answer.body)["request_id"] == "q2"
    assert answer.headers["access-control-allow-origin"] == ORIGIN.decode()
    assert answer.headers["vary"] == "origin"
    assert answer.headers["connection"] == "close"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["date"] == DATE[1].decode().lower()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01",
        b"GET /livez HTTP/1.1\r\n",
        b"GET /livez HTTP/1.1\r\nX-Request-Id: not whole",
        b"GET /livez HTTP/1.1\r\nX-Request-Id: not\tone\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nX-Request-Id: not one" + b"e" * 128 + b"\r\n\r\n",
    ],
)
def test_what_was_not_read_is_not_taken_from_the_request_before(data: bytes) -> None:
    answer = refused(GOOD, data)
    assert len(answer.headers["x-request-id"]) == 32
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "origin"


def test_a_request_that_the_application_has_keeps_the_id_that_it_was_given_there() -> None:
    """Its log has no other."""
    given: list[Record] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scope[RECORD] = record_of(scope)
        given.append(scope[RECORD])
        await asyncio.Event().wait()

    async def scenario() -> Answer:
        connection, transport = connected(app)
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{")
        await asyncio.sleep(0.01)
        connection.expire(math.inf)
        return Answer(transport)

    answer = asyncio.run(scenario())
    assert answer.headers["x-request-id"] == given[0].request_id
    assert not given[0].status, "what becomes of it, the application finds out itself"


@pytest.mark.parametrize(("status", "data"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_told_to_the_log_and_the_metrics(status: int, data: bytes) -> None:
    answer = refused(data)
    assert answer.told is not None
    (record,) = answer.told
    assert record.request_id == "q2"
    assert record.status == status
    assert record.bytes_out == len(answer.body)
    assert json.loads(answer.body)["type"] == f"/problems/{record.problem}"


def test_a_refused_connection_is_told_of_with_its_address() -> None:
    async def scenario() -> Answer:
        connection, transport = connected(serving)
        told = told_to(connection.telemetry)
        connection.client = ("192.0.2.1", 5)
        connection._refuse(RateLimited(retry_after=1.0))
        return Answer(transport, told)

    answer = asyncio.run(scenario())
    assert answer.told is not None
    (record,) = answer.told
    assert record.request_id == answer.headers["x-request-id"]
    assert (record.client, record.status, record.problem) == ("192.0.2.1", 429, "rate-limited")


def test_an_answer_to_head_is_told_of_without_a_body() -> None:
    answer = refused(b"HEAD /livez HTTP/1.1\r\n\r\n")
    assert answer.told is not None
    assert [(record.status, record.bytes_out) for record in answer.told] == [(400, 0)]


@pytest.mark.parametrize("rest", [b"", b"zz\r\n"], ids=["not yet there", "there at once"])
def test_what_the_connection_answers_the_application_does_not_tell_of(rest: bytes) -> None:
    """Else it would count as a client's that left."""

    async def waiting(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        raise ClientGone

    async def scenario() -> list[Record]:
        telemetry, begun, over = Telemetry(), asyncio.Event(), asyncio.Event()
        edge = Edge(waiting, load({}), telemetry, Lifecycle())

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            begun.set()
            await edge(scope, receive, send)
            over.set()

        connection, _ = connected(app)
        told, told_by_application = told_to(connection.telemetry), told_to(telemetry)
        connection.data_received(ASKING + b"Transfer-Encoding: chunked\r\n\r\n" + rest)
        async with asyncio.timeout(30):
            await begun.wait()
            if not rest:
                connection.data_received(b"zz\r\n")
            await over.wait()
        assert told_by_application == []
        return told

    (record,) = asyncio.run(scenario())
    assert (record.request_id, record.status) == ("q2", 400)


@pytest.mark.parametrize(
    "data",
    [
        b" /livez HTTP/1.1\r\nX-Request-Id: q2\r\n\r\n",
        b" /livez HTTP/1.1\r\nX-Request-Id: q2\r\nHost: x\r\nHost: y\r\n\r\n",
        b" /livez HTTP/1.1\r\nX-Request-Id: q2\r\nX-Long: " + b"a" * 2048 + b"\r\n\r\n",
        b" /livez HTTP/1.1\r\nX-Request-Id: q2\r\nHost: x\r\n",
        b" / HTTP/1.1\r\nHost: x\r\nX-Request-Id: q2\r\nContent-Length: 2\r\n\r\n{",
    ],
    ids=["no host", "two hosts", "long headers", "half a head", "half a body"],
)
def test_an_answer_to_head_is_one_to_get_without_its_body(data: bytes) -> None:
    whole, bare = refused(b"GET" + data), refused(b"HEAD" + data)
    assert bare.body == b""
    assert bare.status == whole.status
    assert int(bare.headers["content-length"]) == len(whole.body)


def test_what_follows_head_is_not_taken_for_another() -> None:
    """The parser keeps the method until it has read the next one."""
    assert refused(GOOD.replace(b"GET", b"HEAD"), b"\x16\x03\x01").body
