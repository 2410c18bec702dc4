"""A keep-alive HTTP/1.1 connection that does no more than a load generator needs.

Answers are received into one buffer, in place; only the head's status and lengths are read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple, cast

HEAD_BYTES = 16 << 10
"""Longest head of an answer."""

STALE_S = 5.0
"""So long after its last use a connection is not trusted: a server may close it while a request goes out,
which then has no answer."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_RETRY = re.compile(rb"\r\nretry-after: *(\d+)", re.IGNORECASE)


class Reply(NamedTuple):
    """An answer; its body is valid until the next request on the connection.

    Attributes:
        retry_after: seconds; None where there is no such header.
    """

    status: int
    retry_after: int | None
    body: memoryview


class Connection(asyncio.BufferedProtocol):
    """One connection with one request under way at most.

    Args:
        on_reply: called with the connection and its answer.
        on_lost: called with the connection and whether an answer was outstanding.

    Attributes:
        busy: an answer is outstanding.
        lost: it is closed, or about to be.
    """

    def __init__(
        self,
        on_reply: Callable[[Connection, Reply], None],
        on_lost: Callable[[Connection, bool], None],
    ) -> None:
        self._on_reply = on_reply
        self._on_lost = on_lost
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = bytearray(HEAD_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._body = -1  # where the body begins; -1 until the head is whole
        self._end = 0
        self._keep = True
        self._status = 0
        self._retry: int | None = None
        self.busy = False
        self.lost = False
        self._used = perf_counter()

    def send(self, head: bytes, body: bytes) -> None:
        """Send a request."""
        assert self._transport is not None
        assert not self.busy
        self.busy = True
        self._filled, self._body, self._end = 0, -1, 0
        self._transport.write(head)
        self._transport.write(body)

    @property
    def sending(self) -> bool:
        """Whether a body is still on its way out, be it answered or not."""
        return bool(self._transport and self._transport.get_write_buffer_size())

    @property
    def stale(self) -> bool:
        """Whether it has not been used for long."""
        return not self.sending and perf_counter() - self._used > STALE_S

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the next bytes go."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        self._filled += nbytes
        if self._body < 0 and not self._head():
            return
        if self._filled >= self._end:
            self.busy = False
            self._used = perf_counter()
            body = self._view[self._body : self._end]
            if not self._keep:
                # The rest of a body that nobody wants is not sent (RFC 9112, section 9.5).
                self.lost = True
                assert self._transport is not None
                self._transport.abort()
            self._on_reply(self, Reply(self._status, self._retry, body))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The connection is closed."""
        self.lost = True
        self._on_lost(self, self.busy)

    def _head(self) -> bool:
        """Read the head, if it is whole, and make room for the body."""
        end = self._buffer.find(b"\r\n\r\n", 0, self._filled)
        if end < 0:
            if self._filled == len(self._buffer):
                raise ValueError(f"the head of an answer is longer than {HEAD_BYTES} bytes")
            return False
        head = bytes(self._view[: end + 2])
        length = _LENGTH.search(head)
        if length is None:
            raise ValueError("an answer without a content-length")
        retry = _RETRY.search(head)
        self._status = int(head[9:12])
        self._retry = None if retry is None else int(retry[1])
        self._keep = _CLOSE.search(head) is None
        self._body = end + 4
        self._end = self._body + int(length[1])
        # The loop asks for room before it knows that nothing more comes.
        if self._end >= len(self._buffer):
            buffer = bytearray(self._end + HEAD_BYTES)
            buffer[: self._filled] = self._view[: self._filled]
            self._buffer, self._view = buffer, memoryview(buffer)
        return True
