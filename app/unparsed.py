"""What connections have read and not parsed yet, and whose turn it is to be parsed.

A read brings up to 256 KiB, of which a client can make 43,000 chunks of one byte. So only some of it is
parsed at once. The rest waits, and nothing more is read meanwhile; in each turn of the event loop one of
those who wait goes on, so that a turn takes no longer however many they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized
from time import monotonic
from typing import Any, Protocol


class Turns:
    """Calls those who wait, one in each turn of the event loop; one for each server."""

    def __init__(self) -> None:
        self._waiting: dict[Callable[[], None], None] = {}  # in order, and none twice

    def enter(self, go_on: Callable[[], None]) -> None:
        """Have it called when it is its turn; once, however often it enters until then."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting[go_on] = None

    def _next(self) -> None:
        go_on = next(iter(self._waiting))
        del self._waiting[go_on]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        go_on()


class UnparsedOwner(Protocol):
    """The connection, as far as it matters here.

    Attributes:
        pipeline: requests that wait for the one before them.
    """

    flow: Any

    @property
    def pipeline(self) -> Sized: ...

    def data_received(self, data: bytes) -> None: ...


class Unparsed:
    """Those bytes of one connection; while there are any, its length is 1.

    Attributes:
        came: since when those have waited that are parsed now; None where they have not.
    """

    __slots__ = ("_data", "_owner", "_since", "_turns", "came")

    def __init__(self, owner: UnparsedOwner, turns: Turns) -> None:
        self._owner = owner
        self._turns = turns
        self._data = b""
        self._since = 0.0
        self.came: float | None = None

    def __len__(self) -> int:
        return bool(self._data)

    def hold(self, data: memoryview) -> None:
        """Keep what was not parsed until no request waits any more, or else until the next turn."""
        if not self._data:
            self._since = self.came or monotonic()
        self._data += data
        if not self._owner.pipeline:
            self._owner.flow.pause_reading()
            self._turns.enter(self.go_on)

    def clear(self) -> None:
        """Forget them."""
        self._data = b""

    def go_on(self) -> None:
        """Have some more parsed, unless a request waits."""
        if self._data and not self._owner.pipeline:
            data, self._data, self.came = self._data, b"", self._since
            self._owner.flow.resume_reading()
            self._owner.data_received(data)
            self.came = None
