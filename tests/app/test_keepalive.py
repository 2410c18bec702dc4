"""An idle connection is closed in time, and not while it is used."""

from __future__ import annotations

import asyncio

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
        assert not transport.closed  # but it is looked once more for what has come
        connection.timeout_keep_alive_handler(looked=True)
        assert transport.closed

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
