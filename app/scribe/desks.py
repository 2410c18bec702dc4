"""What of JSON is read and written beside the event loop, and at which of two desks.

Each desk has a scribe, so that what is read quickly does not wait for what takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from app.scribe.desk import Desk, DeskLimits, scribe_maker
from app.visitor import NOBODY, Visitor
from app.wire import Body, Exchange, PlanRequest, Request

LARGE_BYTES = 64 << 10
"""A body of so many takes the event loop some milliseconds to read."""

LARGE_NUMBERS = 1 << 15
"""So many numbers take it a good millisecond to write."""

MIDDLE_BYTES = 8 << 10
"""A body of so many takes the event loop up to half a millisecond to read, more than handing it over. Where
such bodies are under way with `LARGE_BYTES` together, others would wait for the loop as for a large one."""

MIDDLE_NUMBERS = 1 << 13
"""The same of numbers to write."""

QUICK_BYTES = 256 << 10
"""So many bytes, of a body or of tensors, take a scribe some ten milliseconds, at worst thirty."""

QUICK_SHARE = 4
"""Which part of the bytes that may wait is kept for quick bodies."""


class Desks:
    """What a `Desk` does, at one for what is quick or at one for what is not; one for each server."""

    def __init__(self, limits: DeskLimits, on_death: Callable[[str], None]) -> None:
        self._under_way = 0  # bytes of bodies in JSON that the event loop could read
        part = limits.waiting_bytes // QUICK_SHARE
        quick = replace(limits, waiting_bytes=part)
        slow = replace(limits, waiting_bytes=limits.waiting_bytes - part)
        self._quick = Desk(quick, on_death, scribe_maker(quick, urgent=True))
        self._slow = Desk(slow, on_death, scribe_maker(slow))

    async def start(self) -> None:
        """Be ready to start scribes."""
        await self._quick.start()
        await self._slow.start()

    async def close(self) -> None:
        """End the scribes; what waits is refused."""
        await self._quick.close()
        await self._slow.close()

    @contextmanager
    def company(self, nbytes: int) -> Iterator[None]:
        """A request in JSON, with a body of so many bytes, is under way; see `reads`."""
        counted = nbytes if nbytes < LARGE_BYTES else 0
        self._under_way += counted
        try:
            yield
        finally:
            self._under_way -= counted

    def check_room(self, nbytes: int, visitor: Visitor) -> None:
        """Refuse a request at its beginning if its body would be; raises QueueFull."""
        refusal = self._for(nbytes).refusal(nbytes, visitor) if nbytes >= LARGE_BYTES else None
        if refusal is not None:
            raise refusal

    def left(self, visitor: Visitor) -> None:
        """See `Desk.left`."""
        self._quick.left(visitor)
        self._slow.left(visitor)

    def reads(self, nbytes: int) -> bool:
        """Whether a body of so many bytes is read here."""
        return nbytes >= LARGE_BYTES or (nbytes >= MIDDLE_BYTES and self._relieves(nbytes))

    def writes(self, numbers: int) -> bool:
        """Whether an answer of so many numbers is written here."""
        return numbers >= LARGE_NUMBERS or (numbers >= MIDDLE_NUMBERS and self._relieves(0))

    def _relieves(self, nbytes: int) -> bool:
        """Whether such bodies together are a large one, and nobody has to wait for a scribe to start."""
        return self._under_way >= LARGE_BYTES and self._quick.ready(nbytes)

    async def read(
        self,
        body: Body,
        action: str,
        caller: str,
        deadline: float | None,
        visitor: Visitor = NOBODY,
    ) -> Request | PlanRequest:
        """See `Desk.read`."""
        return await self._for(len(body)).read(body, action, caller, deadline, visitor)

    async def write(
        self,
        tensors: Mapping[str, NDArray[Any]],
        info: dict[str, Any],
        exchange: Exchange,
        caller: str,
        deadline: float | None,
    ) -> memoryview:
        """See `Desk.write`."""
        nbytes = sum(array.nbytes for array in tensors.values())
        return await self._for(nbytes).write(tensors, info, exchange, caller, deadline)

    def _for(self, nbytes: int) -> Desk:
        return self._quick if nbytes < QUICK_BYTES else self._slow
