"""Connections whose transport keeps what is written, and a gate of which it is settled whom it lets in."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from app.access import Access
from app.connection import Connection, bounded
from app.few import Few
from app.gate import Refusal
from app.settings import Settings
from app.starts import Starts
from app.telemetry import Telemetry

ASKING = b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\n\r\n"


class Transport(asyncio.Transport):
    """Reads nothing: what the client sends stays in the socket.

    Attributes:
        client: the socket's other end.
    """

    def __init__(self) -> None:
        ours, self.client = socket.socketpair()
        super().__init__({"socket": ours})
        self.written: list[bytes] = []
        self.closed = self.paused = self._ended = False
        self.protocol: Any = None

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: Any) -> None:
        if self._ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def write_eof(self) -> None:
        self._ended = True
        self.written.append(b"")

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Door:
    """A gate that lets everybody in, or nobody."""

    def __init__(self, refusal: Refusal | None) -> None:
        self._refusal = refusal
        self.few = Few()
        self.starts = Starts(self.few)

    def refusal(self, *_: object) -> Refusal | None:
        return self._refusal

    def left(self, connection: int, _address: str) -> None:
        self.few.leave(connection)


def connected(
    app: ASGIApp | None = None, left: int = 0, *, last: bool = False, **settings: Any
) -> tuple[Connection, Transport]:
    """A connection to an application; without one, nobody is let in, with bodies of which is left."""
    door = Door(None if app else Refusal(b"no room", left, last))
    given = Settings(**settings)
    kind = bounded(given, Telemetry(), door, Access(given.api_keys))  # type: ignore[arg-type]
    config = uvicorn.Config(app or (lambda *_: None), http=kind, timeout_keep_alive=60)
    config.load()
    connection, transport = kind(config, ServerState(), {}), Transport()
    connection.connection_made(transport)
    return connection, transport


def answers(app: ASGIApp, *pieces: bytes) -> bytes:
    """What a client reads that sends these pieces, one after another."""

    async def scenario() -> bytes:
        connection, transport = connected(app)
        for piece in pieces:
            connection.data_received(piece)
            await asyncio.sleep(0.01)
        return b"".join(transport.written)

    return asyncio.run(scenario())
