"""Bodies of which more is to come, and which of them gives way where there is no room for another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from app.errors import ServiceError

LOOK_S = 2.0
"""How often it is seen of which bodies more has come. A packet lost twice is sent again by then."""

PROGRESS_BYTES = 64 << 10
"""A body of which fewer come from one look to the next stalls: 256 kbit/s. What has come of it would be
held for minutes, and a byte a second is as good as none."""

MOST = 2
"""The part of what may be held that a caller's unfinished bodies may come to where others find no room."""


class Coming:
    """One body.

    Attributes:
        caller: whose it is.
        held: bytes of it that are held.
        waits: nothing of it is read, since others have their turn.
        stalled: looks, one after the other, at which hardly anything had come.
    """

    __slots__ = ("_refusal", "_seen", "_stop", "caller", "held", "stalled", "waits")

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.held = self.stalled = 0
        self.waits = False
        self._seen = -PROGRESS_BYTES  # it has a whole look's time before it can be found to stall
        self._stop: Callable[[], None] | None = None
        self._refusal: ServiceError | None = None

    def begin(self, stop: Callable[[], None]) -> None:
        """More is to come; `stop` ends the wait for it."""
        self._stop = stop

    def give_way(self, refusal: ServiceError) -> None:
        """Have whoever receives it end with a refusal."""
        self._refusal = refusal
        if self._stop is not None:
            self._stop()

    def check(self) -> None:
        """Raise the refusal with which it gave way, if it did."""
        if self._refusal is not None:
            raise self._refusal

    def look(self) -> None:
        """See whether more has come since the last look."""
        moves = self.waits or self.held - self._seen >= PROGRESS_BYTES
        self.stalled = 0 if moves else self.stalled + 1
        self._seen = self.held - PROGRESS_BYTES if self.waits else self.held


class Unfinished:
    """All of them; used from one event loop.

    Args:
        capacity: bytes that may be held for all.
    """

    def __init__(self, capacity: int) -> None:
        self._most = capacity // MOST
        self._bodies: dict[Coming, None] = {}
        self._look: asyncio.TimerHandle | None = None

    def enter(self, body: Coming) -> None:
        """More of it is to come; `leave` is to be called for it."""
        self._bodies[body] = None
        self._look_later()

    def leave(self, body: Coming) -> None:
        """It is whole, or given up."""
        self._bodies.pop(body, None)

    def yielding(self, to: Coming) -> Coming | None:
        """The body that is to give way to another; it is forgotten here. None where none is.

        That is one that stalls, of the caller who holds the most of those who have any, and of its own
        the one that has for longest. Where none does, it is the largest of another caller whose bodies
        come to more than its part.
        """
        held: Counter[str] = Counter()
        for each in self._bodies:
            held[each.caller] += each.held
        there = [each for each in self._bodies if each is not to and each.held]
        found = max(
            (each for each in there if each.stalled),
            key=lambda each: (held[each.caller], each.stalled),
            default=None,
        ) or max(
            (each for each in there if held[each.caller] > self._most and each.caller != to.caller),
            key=lambda each: each.held,
            default=None,
        )
        if found is not None:
            self.leave(found)
        return found

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._see)

    def _see(self) -> None:
        self._look = None
        for each in self._bodies:
            each.look()
        if self._bodies:
            self._look_later()
