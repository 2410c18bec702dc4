"""A connection that is over holds nothing, and of what comes over one not all is parsed at once."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import weakref
from time import monotonic
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.connection import Connection, bounded
from app.edge import ARRIVED, REST
from app.few import SMALL_BODY
from app.framing import PIECE_BYTES
from app.incoming import Incoming, Wanted
from app.lanes import LEAST, PACED_BYTES
from app.options import load
from tests.app.asgi import running
from tests.app.connecting import ASKING, Transport, connected

REQUESTS = {
    "nothing": b"",
    "an answer": b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    "a refusal": b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
    "no HTTP": b"\x16\x03\x01\r\n\r\n",
    "half a body": b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000000\r\n\r\nx",
}


def has_come(connection: Connection | None, request_: bytes) -> bool:
    """Whether a connection has had a request, and has answered it unless it lacks its end."""
    if connection is None or not request_:
        return connection is not None
    if connection._patience.awaited == "body":
        return True
    answered = connection.cycle is not None and connection.cycle.response_complete
    return answered or connection.leaving is not None


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_connection_that_is_over_is_forgotten(request_: bytes, reset: bool) -> None:
    """At once, not when the time is over for which it would have been kept open."""
    made: list[weakref.ref[Connection]] = []

    async def scenario() -> None:
        async with running() as app:
            state = app.state
            make = bounded(load({}), state.telemetry, state.gate, state.access)
            config = uvicorn.Config(
                app, ws="none", lifespan="off", log_config=None, timeout_keep_alive=65
            )
            config.load()
            server_state = ServerState()

            def connect() -> Connection:
                connection = make(config, server_state, {})
                made.append(weakref.ref(connection))
                return connection

            loop = asyncio.get_running_loop()
            server = await loop.create_server(connect, "127.0.0.1", 0)
            client = socket.create_connection(server.sockets[0].getsockname())
            await asyncio.to_thread(client.sendall, request_)
            async with asyncio.timeout(30):
                while not any(has_come(ref(), request_) for ref in made):
                    await asyncio.sleep(0.01)
            # Where there is an answer, it is there and stays unread.
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            async with asyncio.timeout(30):  # the timer that would close it runs for longer
                while [ref() for ref in made] != [None]:
                    await asyncio.sleep(0.01)
                    gc.collect()
            server.close()

    asyncio.run(scenario())


def test_white_space_around_a_header_is_no_part_of_it() -> None:
    heard: list[tuple[bytes, bytes]] = []

    async def scenario() -> None:
        async def app(scope: Scope, _receive: Receive, send: Send) -> None:
            heard.extend(scope["headers"])
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body"})

        connection, _ = connected(app)
        connection.data_received(
            b"GET / HTTP/1.1\r\nHost: \tx.y:80 \t\r\nX-Request-Id: a b\t\r\n\r\n"
        )
        await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert heard == [(b"host", b"x.y:80"), (b"x-request-id", b"a b")]


def test_that_there_was_no_memory_to_read_a_request_is_not_taken_for_its_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def starved(*_: object) -> None:
        raise MemoryError

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    async def scenario() -> bytes:
        connection, transport = connected(app)
        transport.write_eof = lambda: None  # type: ignore[method-assign]
        connection.data_received(b"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 2\r\n\r\n{}")
        return b"".join(transport.written)

    monkeypatch.setattr(Connection, "on_body", starved)
    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 503 ")


@pytest.mark.parametrize("rest", [b"ZZ\r\n", b"0\r\n" + b"a:b\r\n" * 300], ids=["400", "431"])
def test_a_request_that_has_its_answer_gets_no_other_for_the_rest_of_its_body(rest: bytes) -> None:
    """Its client would take it for the answer to the next."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def scenario() -> None:
        connection, transport = connected(app)
        head = b"GET / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.data_received(head)
        while connection.answering():
            await asyncio.sleep(0)
        connection.data_received(rest)
        assert b"".join(transport.written).count(b"HTTP/1.1 ") == 1
        assert transport.is_closing()

    asyncio.run(scenario())


@pytest.mark.parametrize("owed", [1, 2])
@pytest.mark.parametrize("begun", [False, True], ids=["before it", "in the middle of it"])
@pytest.mark.parametrize(
    ("status", "broken"),
    [
        (400, b"POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\nZZZZ\r\n"),
        (
            413,
            b"POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n" + b"F" * 17 + b"\r\n",
        ),
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost:\r\nX-Long: " + b"a" * (64 << 10)),
    ],
    ids=["a body", "a long body", "a head", "a long head"],
)
def test_what_is_broken_takes_no_answer_from_the_requests_before_it(
    owed: int, begun: bool, status: int, broken: bytes
) -> None:
    """Not even the rest of one: its refusal would be read as a part of that, and comes behind them."""

    async def scenario() -> None:
        goes_on = asyncio.Event()
        paths: list[str] = []

        async def app(scope: Scope, _receive: Receive, send: Send) -> None:
            paths.append(scope["path"])
            headers = [(b"content-length", b"6")]
            if not begun:
                await goes_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            await goes_on.wait()
            await send({"type": "http.response.body", "body": b"two"})

        connection, transport = connected(app)
        good = b"".join(b"GET /%d HTTP/1.1\r\nHost:\r\n\r\n" % number for number in range(owed))
        connection.data_received(good + broken)
        await asyncio.sleep(0.01)
        connection.data_received(good)  # is nobody's
        goes_on.set()
        async with asyncio.timeout(30):
            while not transport.written or transport.written[-1]:
                await asyncio.sleep(0.01)
        *answers, refusal = b"".join(transport.written).split(b"HTTP/1.1 ")[1:]
        assert len(answers) == owed
        assert all(each.startswith(b"200 ") and b"onetwo" in each for each in answers)
        assert refusal.startswith(b"%d " % status)
        assert paths == [f"/{number}" for number in range(owed)]

    asyncio.run(scenario())


def test_the_time_for_a_body_does_not_run_while_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Incoming, "ready", lambda _: True)
    size = PACED_BYTES + 1

    async def scenario() -> None:
        received: list[memoryview] = []

        async def app(scope: Scope, receive: Receive, _send: Send) -> None:
            first = (await receive())["body"]
            place = memoryview(bytearray(size))
            wanted = Wanted(first, lambda: place, lambda _: None, "one")
            received.append(await scope[REST](wanted))

        connection, transport = connected(app, body_timeout_s=10.0)
        others = [Mock(left=100 * PACED_BYTES, caller="one") for _ in range(LEAST)]
        for other in others:
            connection.lanes.wanted.enter(other)
        connection.data_received(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n!" % size
        )
        while transport.protocol is None:
            await asyncio.sleep(0)
        assert transport.paused
        now = monotonic() + 1000
        connection.expire(now)
        assert not transport.written
        connection.lanes.wanted.leave(others[0])
        assert not transport.paused
        connection.expire(now + 5)
        assert not transport.written
        connection.expire(now + 15)
        assert b" 408 " in transport.written[0]

    asyncio.run(scenario())


def test_a_connection_whose_first_request_has_come_is_not_closed_as_unused() -> None:
    async def scenario() -> None:
        connection, transport = connected(header_timeout_s=10)
        transport.client.send(ASKING)
        connection.expire(monotonic() + 11)
        assert not transport.closed
        transport.get_extra_info("socket").recv(len(ASKING))
        connection.expire(monotonic() + 11)
        assert transport.closed

    asyncio.run(scenario())


def test_small_requests_in_a_row_are_not_all_parsed() -> None:
    """Parsed, 200 kB of them, as they come in a single read, would be a hundred times as much."""
    small = b"GET / HTTP/1.1\r\nHost:\r\n\r\n"
    count = (200 << 10) // len(small)

    async def scenario() -> None:
        goes_on = asyncio.Event()
        answered, most = 0, 0

        async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
            nonlocal answered, most
            await goes_on.wait()
            most = max(most, len(connection.pipeline))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body"})
            answered += 1

        connection, transport = connected(app)
        connection.data_received(small * count)
        assert transport.paused
        goes_on.set()
        async with asyncio.timeout(30):
            while answered < count:
                await asyncio.sleep(0.01)
        assert 0 < most <= PIECE_BYTES // len(small) + 1
        assert b"".join(transport.written).count(b"200 OK") == count
        await asyncio.sleep(0)
        assert not transport.paused

    asyncio.run(scenario())


def test_a_request_sent_ahead_has_been_there_since_its_bytes_came() -> None:
    """Its deadline and its time count from then on, also where it was parsed only after a wait."""
    small = b"GET / HTTP/1.1\r\nHost:\r\n\r\n"
    # Told twice to the connection, by two parsers, as its head wishes for another protocol.
    told_twice = b"GET / HTTP/1.1\r\nHost:\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    count = 2 * PIECE_BYTES // len(small)  # the last are held, taken up, and held again
    wait_s = 0.2

    async def scenario() -> None:
        arrived: list[float] = []
        goes_on = asyncio.Semaphore(0)

        async def app(scope: Scope, _receive: Receive, send: Send) -> None:
            arrived.append(scope[ARRIVED])
            await goes_on.acquire()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body"})

        async def answered(many: int) -> None:
            before = len(arrived)
            for _ in range(many):
                goes_on.release()
            async with asyncio.timeout(30):
                while connection.answering() and len(arrived) < before + many:
                    await asyncio.sleep(0)

        connection, _ = connected(app)
        connection.data_received(small * count + told_twice[:-9])
        for _ in range(2):
            await asyncio.sleep(wait_s)
            await answered(count // 2)
        connection.data_received(told_twice[-9:] + small)
        await answered(2)
        assert len(arrived) == count + 2
        assert max(arrived[:-1]) - arrived[0] < wait_s
        assert arrived[-1] - arrived[0] >= 2 * wait_s

    asyncio.run(scenario())


def test_a_connection_counts_while_a_small_request_is_whole_and_not_answered() -> None:
    """Those who asked at once see each other, and who leaves it unfinished is none of them."""
    connection: Connection
    transport: Transport
    goes_on: asyncio.Semaphore

    def there() -> bool:
        return bool(connection.gate.few._there)

    async def answered(count: int) -> None:
        goes_on.release()
        async with asyncio.timeout(30):
            while b"".join(transport.written).count(b"200 OK") < count:
                await asyncio.sleep(0)

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await goes_on.acquire()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    async def scenario() -> None:
        nonlocal connection, transport, goes_on
        goes_on = asyncio.Semaphore(0)
        head = b"POST / HTTP/1.1\r\nHost:\r\nContent-Length: %d\r\n\r\n"
        connection, transport = connected(app)
        assert not there()
        connection.data_received(head % 2 + b"{")
        assert not there()
        connection.data_received(b"}" + head % 2 + b"{}")
        assert there()
        await answered(1)
        assert there(), "another has been sent ahead"
        await answered(2)
        assert not there()
        connection.data_received(b"GET / HTTP/1.1\r\nHost:\r\n\r\n")
        await answered(3)
        connection.data_received(head % 2 + b"{}" + head % 2)
        assert there()
        await answered(4)
        assert not there(), "what has been sent ahead is not whole"
        connection.data_received(b"{}")
        assert there()
        connection.pause_writing()
        assert not there(), "its answers are not taken"
        connection.resume_writing()
        await answered(5)
        connection.data_received(head % 2)
        await answered(6)
        connection.data_received(b"{}")
        assert not there(), "it was answered before it was whole"
        size = SMALL_BODY + 1
        connection.data_received(head % size + bytes(size))
        assert not there(), "nothing small was asked"
        connection.connection_lost(None)
        connection, transport = connected(app)
        connection.data_received(head % 2 + b"{}")
        assert there()
        connection.connection_lost(None)
        assert not there()

    asyncio.run(scenario())
