"""What a connection needs to know of its transport, and how an answer looks on it."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
import termios
from collections.abc import Iterable, Sized

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

_HUNG_UP = (7, 8)
"""TCP_CLOSE and TCP_CLOSE_WAIT, as Linux numbers them: reset by the client, or ended by it."""


class Flow(FlowControl):
    """Reads nothing more while requests wait that were read already.

    Whoever waits for a body has reading resumed, whose body may long be whole; a client that sends
    request after request would have all of them taken in.

    Args:
        pipeline: the requests that wait. held: what waits to be parsed, one at most.
    """

    def __init__(self, transport: asyncio.Transport, pipeline: Sized, held: Sized) -> None:
        super().__init__(transport)
        self._pipeline, self._held = pipeline, held
        self._waits = False

    def wait(self) -> None:
        """Read nothing more until `go_on`, whoever would have reading resumed."""
        self._waits = True
        self.pause_reading()

    def go_on(self) -> None:
        """Read on."""
        self._waits = False
        self.resume_reading()

    def resume_reading(self) -> None:
        """Read on, unless requests wait, or a body for its turn."""
        if not self._pipeline and not self._held and not self._waits:
            super().resume_reading()


def unread_bytes(transport: asyncio.Transport) -> int:
    """Bytes that the client has sent and nobody has read."""
    there = fcntl.ioctl(transport.get_extra_info("socket"), termios.FIONREAD, bytes(4))
    return int.from_bytes(there, sys.byteorder)


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the client sends no more, though bytes may be unread; only Linux tells."""
    if sys.platform != "linux" or transport.is_closing():
        return False
    ours = transport.get_extra_info("socket")
    # The first byte of the kernel's answer is the connection's state.
    return ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _HUNG_UP


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes of answers that the client has not taken, where some of them are still with us.

    The kernel's part counts, as it may go down for long before it takes more of ours.
    """
    ours = transport.get_write_buffer_size()
    if not ours:
        return 0
    queued = fcntl.ioctl(transport.get_extra_info("socket"), termios.TIOCOUTQ, bytes(4))
    return ours + int.from_bytes(queued, sys.byteorder)


def head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """An answer's head."""
    return b"%b%b\r\n" % (STATUS_LINE[status], b"".join(b"%b: %b\r\n" % each for each in headers))
