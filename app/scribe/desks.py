"""Two desks, each with a scribe, so that what is read quickly does not wait for what takes long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from app.scribe.desk import Desk, DeskLimits, scribe_maker
from app.wire import Exchange, PlanRequest, Request

QUICK_BYTES = 256 << 10
"""So many bytes, of a body or of tensors, take a scribe some ten milliseconds, at worst thirty."""

QUICK_SHARE = 4
"""Which part of the bytes that may wait is kept for quick bodies."""


class Desks:
    """What a `Desk` does, at one for what is quick or at one for what is not; one for each server."""

    def __init__(self, limits: DeskLimits, on_death: Callable[[str], None]) -> None:
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

    async def read(
        self,
        body: bytes | bytearray | memoryview,
        action: str,
        client: str,
        deadline: float | None,
    ) -> Request | PlanRequest:
        """See `Desk.read`."""
        return await self._for(len(body)).read(body, action, client, deadline)

    async def write(
        self,
        tensors: Mapping[str, NDArray[Any]],
        info: dict[str, Any],
        exchange: Exchange,
        client: str,
        deadline: float | None,
    ) -> memoryview:
        """See `Desk.write`."""
        nbytes = sum(array.nbytes for array in tensors.values())
        return await self._for(nbytes).write(tensors, info, exchange, client, deadline)

    def _for(self, nbytes: int) -> Desk:
        return self._quick if nbytes < QUICK_BYTES else self._slow
