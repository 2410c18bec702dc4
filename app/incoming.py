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
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.edge import ClientGone
from app.lanes import PACED_BYTES, Lane, Lanes
from app.transport import has_hung_up, unread_bytes

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


class TransportOwner(Protocol):
    """The connection, as far as it matters here."""

    flow: Any
    transport: Any
    network: str

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


class Wanted(NamedTuple):
    """What a body is received for.

    Attributes:
        first: what had arrived of it.
        place: makes room for all of it, once it is its turn.
        received: told of each further number of bytes; may raise, and the rest is thrown away.
        caller: whose turn it uses.
    """

    first: bytes
    place: Callable[[], memoryview]
    received: Callable[[int], None]
    caller: str


class Incoming(asyncio.BufferedProtocol):
    """Takes an owner's transport until `left` more bytes have come.

    Args:
        lanes: give turns.
        wanted: what `whole` is to return; None where the bytes are thrown away.

    Attributes:
        left: bytes that are still to come.
        begun: it is its turn, or was; until then nothing is read.
        caller: whose turn it uses; that of the client's network where nobody wants the body.
    """

    def __init__(
        self, owner: TransportOwner, left: int, lanes: Lanes, wanted: Wanted | None = None
    ) -> None:
        self._owner = owner
        self.left = left
        self._lanes = lanes
        self.begun = False
        self._wanted = wanted
        self.caller = owner.network if wanted is None else wanted.caller
        self._body: memoryview | None = None
        self._place = fresh(SINK_BYTES)
        self._thrown = 0  # bytes thrown away since the loop was told of any
        self._moved = 0  # bytes since the last pause
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        owner.flow.wait()
        owner.transport.set_protocol(self)
        self._enter(lanes.unwanted if wanted is None else lanes.wanted)

    def _enter(self, lane: Lane) -> None:
        self._lane = lane
        self._paced = self.left >= PACED_BYTES
        lane.enter(self)

    def ready(self) -> bool:
        """Whether something has come."""
        transport = self._owner.transport
        return not transport.is_closing() and unread_bytes(transport) > 0

    def gone(self) -> bool:
        """Whether the client has hung up on a body that nobody wants, as it may once that is refused."""
        return self._wanted is None and has_hung_up(self._owner.transport)

    def begin(self) -> None:
        """It is its turn."""
        self.begun = True
        if self._wanted is not None:
            first = self._wanted.first
            try:
                self._body = self._wanted.place()
            except Exception as error:  # noqa: BLE001 - there is no memory, or no room any more
                self._end(error)
                return
            self._body[: len(first)] = first
            self._place = self._body[len(first) :]
        self._owner.flow.go_on()

    async def whole(self) -> memoryview:
        """The body.

        Raises:
            ClientGone: the client left before; or what `Wanted` has that raised.
        """
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
        self._thrown = self._discard() if self._wanted is None and CAN_DISCARD else 0
        return self._place[: min(SLICE_BYTES, self.left)]

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have come."""
        self.left -= nbytes
        if self._wanted is not None:
            self._place = self._place[nbytes:]
            try:
                self._wanted.received(nbytes)
            except Exception as error:  # noqa: BLE001 - it is the reader's
                self._end(error)
        if not self.left:
            self._lane.leave(self)
            # A transport asks for its protocol when it starts to read.
            self._owner.flow.wait()
            self._owner.transport.set_protocol(self._owner)
            self._owner.flow.go_on()
            if self._wanted is not None and not self._whole.done():
                self._whole.set_result(None)
            self._owner.body_received()
            return
        self._moved += nbytes + self._thrown
        if self.begun and self._moved >= SLICE_BYTES - SINK_BYTES:
            # Else the loop would read on for as long as it fills what it is shown.
            self._owner.flow.wait()
            pause = self._lane.pause(self._moved) if self._paced else 0
            self._moved = 0
            asyncio.get_running_loop().call_later(pause, self._go_on)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self.left = 0
        self._lane.leave(self)
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
            size = min(self.left - 1, SLICE_BYTES)
            thrown = ours.recv_into(_NOWHERE, size, socket.MSG_TRUNC) if size else 0
        except OSError:
            return 0  # nothing has come, or the transport finds out what happened
        finally:
            ours.detach()
        self.left -= thrown
        return thrown

    def _go_on(self) -> None:
        """The pause is over; others may have their turn by now."""
        if self.begun and self.left:
            self._owner.flow.go_on()

    def _end(self, error: Exception) -> None:
        # Where the body is thrown away, nobody would ever take the error.
        if self._wanted is not None and not self._whole.done():
            self._whole.set_exception(error)
        self._forget()

    def _forget(self) -> None:
        """Nobody wants the body any more; what is still to come of it waits for its turn among its like."""
        self._body = self._wanted = None
        self._place = fresh(SINK_BYTES if self.left else 0)
        if self.left and self._lane is self._lanes.wanted:
            self._lane.leave(self)
            self.begun = False
            self._owner.flow.wait()
            self._enter(self._lanes.unwanted)
