"""Messages between the server and a worker: JSON behind a length, over a pair of sockets.

Only small and plain things go this way (where tensors lie, what to do with them); tensors go through
the arena. Both ends are ours, so a malformed message is a bug of ours.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

MAX_MESSAGE_BYTES = 64 << 10
"""Largest message. It fits the socket's buffer, so that sending one never waits."""

_LENGTH = struct.Struct("<I")

Message = dict[str, Any]


def pack(message: Message) -> bytes:
    """A message as the bytes that go over the socket.

    Raises:
        ValueError: it is larger than `MAX_MESSAGE_BYTES`.
    """
    body = json.dumps(message, separators=(",", ":"), default=repr).encode()
    if len(body) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {len(body)} bytes, at most {MAX_MESSAGE_BYTES} allowed")
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Bytes as they arrive into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that `data` completes."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            body = bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
            yield json.loads(body)


def messages(control: socket.socket, idle_s: float, idle: Callable[[], None]) -> Iterator[Message]:
    """The messages on a blocking socket, until the other side closes it.

    Args:
        idle_s: seconds without a byte after which `idle` is called, once until there are more.
    """
    unpacker = Unpacker()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        if not poll.poll(idle_s * 1000):
            idle()
        if not (data := control.recv(MAX_MESSAGE_BYTES)):
            return
        yield from unpacker.feed(data)
