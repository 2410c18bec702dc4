"""In one turn of the event loop little of what a client sent is parsed, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from starlette.types import Receive, Scope, Send

from app import parting, unparsed
from app.connection import Connection
from app.framing import MOST_PIECES, PIECE_BYTES
from app.unparsed import Turns, Unparsed
from tests.app.connecting import connected

CHUNKED = b"POST /chunks HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET /next HTTP/1.1\r\nHost:\r\n\r\n"
TINY = 40_000
"""Chunks of a byte, about as many as one read brings."""

MOST = MOST_PIECES + PIECE_BYTES // len(b"1\r\nx\r\n") + 2
"""Most of them that are parsed in a turn."""

assert MOST < TINY / 50


def chunks_of_a_byte(count: int) -> bytes:
    return b"".join(b"1\r\n%c\r\n" % (number % 251) for number in range(count))


def body_of(count: int) -> bytes:
    return bytes(number % 251 for number in range(count))


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0)


class Reading:
    """An application that reads bodies whole, and keeps them by path."""

    def __init__(self) -> None:
        self.read: list[tuple[str, bytes]] = []
        self.gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone = True
                return
            body += message["body"]
            more = message["more_body"]
        self.read.append((scope["path"], bytes(body)))
        await answer(send)


async def answer(send: Send) -> None:
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body"})


async def at_once(_scope: Scope, _receive: Receive, send: Send) -> None:
    await answer(send)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Whose parser told of a piece of a body, for each of them in turn."""
    those: list[Connection] = []
    on_body = Connection.on_body

    def counted(self: Connection, body: bytes) -> None:
        those.append(self)
        on_body(self, body)

    monkeypatch.setattr(Connection, "on_body", counted)
    return those


def test_one_of_those_who_wait_goes_on_in_a_turn_and_none_is_called_twice() -> None:
    async def scenario() -> None:
        turns, called = Turns(), [""]

        def again() -> None:
            called.append("again")
            if called.count("again") < 3:
                turns.enter(again)

        def other() -> None:
            called.append("other")

        for each in (again, other, again, other):
            turns.enter(each)
        seen = []
        for _ in range(6):
            seen.append(called[-1])
            await asyncio.sleep(0)
        assert seen == ["", "again", "other", "again", "again", "again"]
        assert called == ["", "again", "other", "again", "again"]

    asyncio.run(scenario())


def test_what_is_held_again_and_again_has_come_when_it_was_held_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        def parse(data: bytes) -> None:
            came.append(held.came)
            now[0] += 1.0
            if data[1:]:
                held.hold(memoryview(data)[1:])

        came: list[float | None] = []
        reader = SimpleNamespace(flow=Mock(), pipeline=[], data_received=parse)
        held = Unparsed(reader, Turns())
        for first in (5.0, 90.0):
            now[0] = first
            parse(b"abcd")
            while held:
                await asyncio.sleep(0)
            assert came == [None, first + 1.0, first + 1.0, first + 1.0]
            came.clear()
        assert held.came is None

    now = [0.0]
    monkeypatch.setattr(unparsed, "monotonic", lambda: now[0])
    asyncio.run(scenario())


def test_tiny_chunks_of_many_connections_take_little_of_each_turn(
    monkeypatch: pytest.MonkeyPatch, told: list[Connection]
) -> None:
    of_one_server = Turns()
    monkeypatch.setattr("app.connection.Turns", lambda: of_one_server)

    async def scenario() -> None:
        app = Reading()
        made = [connected(app) for _ in range(4)]
        for connection, _ in made:
            before = len(told)
            connection.data_received(CHUNKED + chunks_of_a_byte(TINY) + b"0\r\n\r\n" + GET)
            assert 0 < len(told) - before <= MOST
        while len(app.read) < 2 * len(made):
            before = len(told)
            await asyncio.sleep(0)
            assert len(told) - before <= MOST
        first, second = ("/chunks", body_of(TINY)), ("/next", b"")
        assert sorted(app.read) == [first] * len(made) + [second] * len(made)
        # Nobody waits for all of another's: they end one after another.
        last = [len(told) - told[::-1].index(connection) for connection, _ in made]
        assert max(last) - min(last) <= len(made) * MOST

    asyncio.run(scenario())


def test_nothing_is_read_meanwhile() -> None:
    async def scenario() -> None:
        app = Reading()
        connection, transport = connected(app)
        connection.data_received(CHUNKED + chunks_of_a_byte(TINY))
        turns = 0
        while transport.paused:
            turns += 1
            await asyncio.sleep(0)
        assert turns > TINY // MOST
        await until(lambda: not connection.cycle.body)
        connection.data_received(b"0\r\n\r\n")
        await until(lambda: bool(app.read))
        assert app.read == [("/chunks", body_of(TINY))]

    asyncio.run(scenario())


def test_a_read_of_large_chunks_is_parsed_at_once(told: list[Connection]) -> None:
    large = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"

    async def scenario() -> None:
        connection, _ = connected(Reading())
        connection.data_received((CHUNKED + large * 4)[: 256 << 10])
        assert 0 < len(told) < MOST_PIECES
        assert not connection._unparsed

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1, 5, 997, PIECE_BYTES, 1 << 20])
def test_however_it_is_split_all_of_it_is_read(size: int) -> None:
    count = 3000
    length = b"POST /length HTTP/1.1\r\nHost:\r\nContent-Length: 5000\r\n\r\n" + body_of(5000)
    one = CHUNKED + chunks_of_a_byte(count) + b"0\r\nX-Trailer: a\r\n\r\n"
    sent = one + GET + length + one + length + GET
    chunked = ("/chunks", body_of(count))
    counted = ("/length", body_of(5000))

    async def scenario() -> None:
        app = Reading()
        connection, transport = connected(app)
        for start in range(0, len(sent), size):
            connection.data_received(sent[start : start + size])
            await until(lambda: not transport.paused)
        await until(lambda: len(app.read) == 6)
        assert app.read == [chunked, ("/next", b""), counted, chunked, counted, ("/next", b"")]

    asyncio.run(scenario())


def test_what_was_read_of_a_body_behind_is_parsed_before_its_rest_is_received() -> None:
    """Whoever receives that goes by what the parser has had."""
    known = b"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 300000\r\n\r\n" + b"x" * 100_000
    left: list[tuple[int, bool]] = []

    async def scenario() -> None:
        async def app(scope: Scope, _receive: Receive, send: Send) -> None:
            if scope["path"] == "/":
                left.append((connection.body_left, bool(connection._unparsed)))
                await asyncio.Event().wait()
            await answer(send)

        # All places of the second head among the pieces that are parsed together.
        for count in range(MOST_PIECES - 80, MOST_PIECES + 80, 7):
            connection, _ = connected(app)
            connection.data_received(CHUNKED + chunks_of_a_byte(count))
            await asyncio.sleep(0.001)
            connection.data_received(chunks_of_a_byte(count) + b"0\r\n\r\n" + known)
            before = len(left)
            await until(lambda before=before: len(left) > before)  # type: ignore[misc]

    asyncio.run(scenario())
    assert set(left) == {(200_000, False)}


def test_a_client_that_leaves_meanwhile_is_gone() -> None:
    failed: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: failed.append(what))
        app = Reading()
        connection, transport = connected(app)
        connection.data_received(CHUNKED + chunks_of_a_byte(TINY))
        transport.close()
        connection.connection_lost(None)
        await until(lambda: app.gone)
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert not failed


@pytest.mark.parametrize("cause", ["time", "no HTTP"])
def test_of_what_is_refused_nothing_more_is_parsed(told: list[Connection], cause: str) -> None:
    async def scenario() -> None:
        connection, transport = connected(Reading())
        end = b"ZZ\r\n" if cause == "no HTTP" else b""
        connection.data_received(CHUNKED + chunks_of_a_byte(2 * MOST) + end)
        if cause == "time":
            connection.expire(math.inf)
            before = len(told)
        await until(lambda: len(transport.written) > 0 and transport.written[-1] == b"")
        assert transport.written[0].startswith(b"HTTP/1.1 %d " % (400 if end else 408))
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(told) == (2 * MOST if end else before)
        assert not transport.paused

    asyncio.run(scenario())


@pytest.mark.parametrize("large", [True, False])
def test_chunks_without_end_that_nobody_wants_are_cut_off(
    monkeypatch: pytest.MonkeyPatch, large: bool, told: list[Connection]
) -> None:
    most = 1 << 20
    monkeypatch.setattr(parting, "MOST_REST", most)
    piece = b"8000\r\n" + b"x" * 0x8000 + b"\r\n" if large else chunks_of_a_byte(5000)

    async def scenario() -> None:
        connection, transport = connected(at_once)
        ends = CHUNKED + piece * (most // len(piece)) + b"0\r\n\r\n"
        connection.data_received(CHUNKED)
        await until(lambda: len(transport.written) > 0)
        sent = 0
        while not transport.closed:
            before = len(told)
            if not transport.paused:
                connection.data_received(piece)
                sent += len(piece)
                assert transport.paused or transport.closed  # others have their turn
            assert len(told) - before <= MOST
            before = len(told)
            await asyncio.sleep(0)
            assert len(told) - before <= MOST
        assert most < sent <= most + 2 * len(piece)
        assert b"".join(transport.written).count(b"200 OK") == 1

        # One that ends before is none of them, nor is the next.
        connection, transport = connected(at_once)
        for count in (1, 2, 3):
            connection.data_received(ends[: len(CHUNKED)])
            await until(lambda count=count: len(transport.written) == 2 * count)  # type: ignore[misc]
            connection.data_received(ends[len(CHUNKED) :])
            await until(lambda: not transport.paused and not connection.begun)
        assert not transport.closed

    asyncio.run(scenario())
