"""How a connection ends whose client is told to stop sending."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from app.connection import Connection
from app.edge import OUTLAST
from app.parting import BRIEFLY_S
from app.server import HANG_UP_S
from tests.app.connecting import ASKING, Transport, connected

BEGUN = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345"
END = b""
"""What the transport is given for the end of our side."""


def test_it_ends_once_the_refused_body_has_come() -> None:
    async def scenario() -> None:
        connection, transport = connected(left=10, last=True)
        connection.data_received(ASKING)
        rest = transport.protocol
        rest.buffer_updated(9)
        assert transport.written == [b"no room"]
        rest.buffer_updated(1)
        assert transport.protocol is connection
        _leaves(connection, transport)

    asyncio.run(scenario())


def _leaves(connection: Connection, transport: Transport) -> None:
    """What comes is read and forgotten, until the time is over for it."""
    written = list(transport.written)
    assert written[-1] == END
    assert not transport.closed
    assert not transport.paused
    connection.data_received(ASKING)
    assert transport.written == written
    assert connection.timeout_keep_alive_task is None
    timer = connection.leaving
    assert timer is not None
    timer._run()
    assert transport.closed
    connection.connection_lost(None)
    assert timer.cancelled()


class Refusing:
    """An application that refuses a body, and gives its answer in two parts.

    Attributes:
        said: the first is out. told: the connection was told to outlast the answer. done: all is out.
    """

    def __init__(self) -> None:
        self.said, self.told, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.tell, self.end = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        headers = [(b"content-length", b"2"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        self.said.set()
        await self.tell.wait()
        scope[OUTLAST]()
        self.told.set()
        await self.end.wait()
        await send({"type": "http.response.body", "body": b"no"})
        self.done.set()


@pytest.mark.parametrize("when", ["before it is told", "before the answer is out", "last"])
def test_it_outlasts_the_answer_as_long_as_the_body_is_to_come(when: str) -> None:
    async def scenario() -> None:
        app = Refusing()
        connection, transport = connected(app)
        connection.data_received(BEGUN)
        await app.said.wait()
        if when == "before it is told":
            connection.data_received(b"67890")
        app.tell.set()
        await app.told.wait()
        if when == "before the answer is out":
            connection.data_received(b"67890")
        assert not transport.closed
        app.end.set()
        await app.done.wait()
        assert b"".join(transport.written).endswith(b"\r\n\r\nno")
        # With all of the body read, the answer may end it.
        assert transport.closed == (when != "last")
        if when == "last":
            connection.data_received(b"67890" + ASKING)
            _leaves(connection, transport)

    asyncio.run(scenario())


def test_what_comes_from_those_who_are_leaving_is_read_by_turns() -> None:
    async def scenario() -> None:
        both = [connected(left=0), connected(left=0)]
        for connection, _ in both:
            connection.turns = both[0][0].turns
            connection.hang_up()
            connection.data_received(BEGUN)
        assert [transport.paused for _, transport in both] == [True, True]
        await asyncio.sleep(0)
        assert [transport.paused for _, transport in both] == [False, True]
        await asyncio.sleep(0)
        assert [transport.paused for _, transport in both] == [False, False]
        for connection, transport in both:
            connection.transport.close()
            connection.data_received(BEGUN)
            assert not transport.paused
            connection.connection_lost(None)

    asyncio.run(scenario())


def test_the_end_of_the_server_leaves_time_to_read_why() -> None:
    async def scenario() -> None:
        connection, transport = connected(left=10, last=True)
        connection.data_received(ASKING)
        for _ in range(2):
            connection.shutdown()
        assert transport.written == [b"no room", END]
        assert not transport.closed
        transport.protocol.buffer_updated(10)
        _leaves(connection, transport)

    asyncio.run(scenario())


def test_the_server_does_not_wait_for_long_for_those_who_are_leaving() -> None:
    async def scenario() -> None:
        connection, transport = connected(left=10, last=True)
        connection.data_received(ASKING)
        transport.protocol.buffer_updated(10)
        first = connection.leaving
        connection.shutdown()
        assert first is not None
        assert first.cancelled()
        assert connection.leaving is not None
        assert (
            connection.leaving.when()
            <= connection.loop.time() + BRIEFLY_S
            < HANG_UP_S + connection.loop.time()
        )
        _leaves(connection, transport)

    asyncio.run(scenario())


def test_who_was_hung_up_on_is_not_told_to_go_on() -> None:
    """The application asks for the body when what came of it has been found to be no HTTP."""

    async def scenario() -> None:
        got: asyncio.Queue[str] = asyncio.Queue()

        async def app(_: Scope, receive: Receive, __: Send) -> None:
            got.put_nowait((await receive())["type"])

        connection, transport = connected(app)
        head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.data_received(head + b"ZZ\r\n")
        assert await asyncio.wait_for(got.get(), 10) == "http.disconnect"
        assert transport.written[0].startswith(b"HTTP/1.1 400 ")
        _leaves(connection, transport)

    asyncio.run(scenario())


def test_a_connection_that_is_kept_ends_with_the_server() -> None:
    async def scenario() -> None:
        connection, transport = connected(left=10)
        connection.data_received(ASKING)
        connection.shutdown()
        assert transport.closed

    asyncio.run(scenario())
