"""The rest of a large body, received from the socket into the place where it stays.

uvicorn's way copies a body four times before the application has it: out of the transport's buffer,
out of the parser, into the cycle, and to whoever reads it. Where the length is known there is
nothing to parse, so the transport is handed the body's own memory instead, and the parser back when
it is full.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from app.edge import ClientGone

SLICE_BYTES = 1 << 20
"""At most so much is received, or sent, before other connections have their turn."""

SINK_BYTES = 64 << 10
"""Size of the place for what nobody wants any more."""

CAN_DISCARD = sys.platform == "linux"
"""Whether the kernel throws received bytes away without copying them: MSG_TRUNC, tcp(7)."""


def fresh(size: int) -> memoryview:
    """Memory that nobody has touched: pages are taken as bytes come, without the interpreter's lock."""
    return np.empty(size, np.uint8).data


_NOWHERE = fresh(SLICE_BYTES)


class Owner(Protocol):
    """The connection, as far as it matters here."""

    flow: Any
    transport: Any

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""

    def eof_received(self) -> bool | None:
        """The client sends nothing more."""

    def pause_writing(self) -> None:
        """The client does not take what is sent."""

    def resume_writing(self) -> None:
        """It does again."""

    def body_received(self) -> None:
        """Take the transport back; the body is whole."""


class Incoming(asyncio.BufferedProtocol):
    """Takes an owner's transport until `left` more bytes have come, and throws them away.

    `whole` keeps them.
    """

    def __init__(self, owner: Owner, left: int) -> None:
        self._owner = owner
        self._left = left
        self._body: memoryview | None = None
        self._place = fresh(SINK_BYTES)
        self._thrown = 0  # bytes thrown away since the loop was told of any
        self._count: Callable[[int], None] | None = None
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hand_over(self)

    async def whole(
        self, first: bytes, place: memoryview, count: Callable[[int], None]
    ) -> memoryview:
        """The body.

        Args:
            first: what had arrived of it.
            place: where it is to be, as large as it is.
            count: told of each further number of bytes; may raise, and the rest is thrown away.

        Raises:
            ClientGone: the client left before; or what `count` raised.
        """
        self._count = count
        self._body = place
        self._body[: len(first)] = first
        self._place = self._body[len(first) :]
        del place
        try:
            await self._whole
            assert self._body is not None
            return self._body
        finally:
            # A transport remembers who received for it last.
            self._forget()

    def give_up(self) -> None:
        """Wait no longer; what still comes is thrown away."""
        self._end(ClientGone())

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the memory is there
        """Where the next bytes go."""
        self._thrown = self._discard() if self._body is None and CAN_DISCARD else 0
        return self._place[: min(SLICE_BYTES, self._left)]

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have come."""
        self._left -= nbytes
        if self._body is not None and self._count is not None:
            self._place = self._place[nbytes:]
            try:
                self._count(nbytes)
            except Exception as error:  # noqa: BLE001 - it is the reader's
                self._end(error)
        if not self._left:
            self._hand_over(self._owner)
            if self._body is not None and not self._whole.done():
                self._whole.set_result(None)
            self._owner.body_received()
        elif nbytes + self._thrown >= SLICE_BYTES - SINK_BYTES:
            # Else the loop would read on for as long as it fills what it is shown.
            self._owner.flow.pause_reading()
            asyncio.get_running_loop().call_soon(self._owner.flow.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self.give_up()
        self._owner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """The client sends no more; there is no whole body to come."""
        return self._owner.eof_received()

    def pause_writing(self) -> None:
        """The client does not take what is sent."""
        self._owner.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._owner.resume_writing()

    def _discard(self) -> int:
        """Throw away what has come, but for the last byte, with which the transport sees the end.

        Returns:
            How many bytes.
        """
        file = self._owner.transport.get_extra_info("socket").fileno()
        ours = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, file)
        try:
            # The kernel writes nothing there, but wants to be shown so much room.
            size = min(self._left - 1, SLICE_BYTES)
            thrown = ours.recv_into(_NOWHERE, size, socket.MSG_TRUNC) if size else 0
        except OSError:
            return 0  # nothing has come, or the transport finds out what happened
        finally:
            ours.detach()
        self._left -= thrown
        return thrown

    def _hand_over(self, protocol: object) -> None:
        """Let another protocol read; a transport asks for it when it starts to read."""
        self._owner.flow.pause_reading()
        self._owner.transport.set_protocol(protocol)
        self._owner.flow.resume_reading()

    def _end(self, error: Exception) -> None:
        # Where the body is thrown away, nobody would ever take the error.
        if self._body is not None and not self._whole.done():
            self._whole.set_exception(error)
        self._forget()

    def _forget(self) -> None:
        """Nobody wants the body any more."""
        self._body = None
        self._place = fresh(SINK_BYTES if self._left else 0)
