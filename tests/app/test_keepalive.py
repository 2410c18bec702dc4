"""An idle connection is closed in time, and not while it is used."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from app.edge import KEPT
from app.keepalive import LAST_READ_S
from tests.app.connecting import ASKING, Door, connected


def test_a_connection_is_idle_from_its_last_refusal_on() -> None:
    async def scenario() -> None:
        connection, transport = connected()
        for _ in range(3):
            connection.data_received(ASKING)
        assert transport.written == [b"no room"] * 3
        # The timer of the first refusal runs out 60 s after it; the last one was just now.
        connection.timeout_keep_alive_handler()
        assert not transport.closed
        assert connection.timeout_keep_alive_task is not None
        when = connection.timeout_keep_alive_task.when()
        assert connection._idle_since + 60 <= when <= connection.loop.time() + 60
        connection._idle_since -= 60
        connection.timeout_keep_alive_handler()
        assert transport.closed

    asyncio.run(scenario())


def test_an_idle_connection_whose_next_request_has_come_is_not_closed() -> None:
    async def scenario() -> None:
        connection, transport = connected()
        connection.await_next()
        transport.client.send(ASKING)
        connection.timeout_keep_alive_handler()
        assert not transport.closed
        # It is read soon, and else the connection is looked at again.
        assert connection.timeout_keep_alive_task is not None
        assert connection.timeout_keep_alive_task.when() <= connection.loop.time() + LAST_READ_S
        connection._unset_keepalive_if_required()

    asyncio.run(scenario())


def test_a_connection_is_idle_once_the_rest_of_a_refused_body_has_come() -> None:
    async def scenario() -> None:
        connection, transport = connected(left=10)
        connection.data_received(ASKING)
        assert transport.written == [b"no room"]
        rest = transport.protocol
        rest.buffer_updated(9)
        assert connection.timeout_keep_alive_task is None  # the client is sending
        rest.buffer_updated(1)
        assert transport.protocol is connection
        assert connection.timeout_keep_alive_task is not None
        connection._unset_keepalive_if_required()

    asyncio.run(scenario())


def test_empty_lines_do_not_keep_a_connection_open() -> None:
    async def scenario() -> None:
        connection, _ = connected()
        connection.data_received(ASKING)
        timer = connection.timeout_keep_alive_task
        assert timer is not None
        connection.gate = Door(None)  # type: ignore[assignment]
        for _ in range(3):
            connection.data_received(b"\r\n")
        assert connection.timeout_keep_alive_task is timer
        assert not timer.cancelled()
        connection.data_received(b"G")
        assert timer.cancelled()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: x\r\n\r\n", True),
        (b"POST / HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", True),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n", False),
        (b"CONNECT / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (
            b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            False,
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_connection_of_http_1_0_is_kept_where_its_client_asks(head: bytes, kept: bool) -> None:
    told = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        told.append(bool(scope.get(KEPT)))
        length = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body"})

    async def scenario() -> None:
        connection, transport = connected(app)
        for _ in range(3 if kept else 1):
            connection.data_received(head)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert transport.closed is not kept
        connection._unset_keepalive_if_required()

    asyncio.run(scenario())
    assert told == [kept] * (3 if kept else 1)


def test_http_1_1_needs_no_word_to_be_kept() -> None:
    told = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        told.append(KEPT in scope)

    async def scenario() -> None:
        connection, _ = connected(app)
        connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert told == [False]
