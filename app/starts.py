"""How many requests of a crowd begin in a turn of the event loop: few, while somebody asks beside it.

A turn works on all that has come. Where one caller keeps dozens of connections busy with small
requests, it takes ten milliseconds and more, and whoever else asks for one waits for several of them.
So while there is somebody else, some of a crowd's requests begin in each turn, in the order they came in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

from app.few import Few

A_TURN = 2
"""Requests of each crowd that begin in a turn then, at least: with four, others wait twice as long."""

SHORT_S = 0.02
"""For how long turns are short after somebody asked who is no crowd: it will ask again, if it is quick. And
for how long a crowd is one whose connections have fewer requests under way."""

CROWDS = 64
"""Callers that are remembered as crowds; beyond it, all are forgotten."""


class Starts:
    """Tells which requests may begin, and begins the others; one for each server.

    Args:
        few: knows who is a crowd.

    Attributes:
        places: requests that are to begin and ask for a place in the queue.
    """

    def __init__(self, few: Few) -> None:
        self._few = few
        self.places = 0
        self._of: dict[str, deque[tuple[Callable[[], None], bool]]] = {}  # of each caller
        self._was_crowd: dict[str, float] = {}  # when each was last
        self._short_until = 0.0
        self._counts = False  # what begins in this turn, until it is over
        self._begun: dict[str, int] = {}  # so many of each crowd
        self._others = 0  # and of those who are none
        self._most = A_TURN  # of each crowd, in this turn

    def may(self, caller: str) -> bool:
        """Whether a request may begin now; one that may not is to `wait`."""
        if not self._few.crowded:
            return True
        now = monotonic()
        if not self._crowd(caller, now):
            self._short_until = now + SHORT_S
            self._count()
            self._others += 1
            return True
        if caller in self._of:
            return False
        if now >= self._short_until:
            return True
        self._count()
        begun = self._begun[caller] = self._begun.get(caller, 0) + 1
        return begun <= self._most

    def wait(self, caller: str, start: Callable[[], None], *, place: bool) -> None:
        """Begin a request by a call of `start`, once it is its turn.

        Args:
            place: whether it asks for a place in the queue.
        """
        self.places += place
        self._of.setdefault(caller, deque()).append((start, place))

    def _crowd(self, caller: str, now: float) -> bool:
        if self._few.crowd(caller):
            if len(self._was_crowd) >= CROWDS:
                self._was_crowd.clear()
            self._was_crowd[caller] = now
            return True
        # Of a crowd's requests some are answered together, and the next seem to be few.
        return now < self._was_crowd.get(caller, -SHORT_S) + SHORT_S

    def _count(self) -> None:
        if not self._counts:
            self._counts = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """The turn in which some began is over."""
        self._counts = False
        self._begun.clear()
        # Nobody keeps a crowd waiting by asking for more than it does.
        self._most, self._others = max(A_TURN, self._others), 0
        if self._of or self._most > A_TURN:
            self._count()
        short = monotonic() < self._short_until
        for caller, waiting in list(self._of.items()):
            count = self._begun[caller] = min(self._most, len(waiting)) if short else len(waiting)
            if count == len(waiting):
                del self._of[caller]
            for _ in range(count):
                start, place = waiting.popleft()
                self.places -= place
                start()
