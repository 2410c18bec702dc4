"""How many requests of a crowd begin in a turn of the event loop: few, while somebody asks beside it.

A turn works on all that has come. Where one address keeps dozens of connections busy with small
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
"""Requests of each crowd that begin in a turn then: with four, others wait twice as long."""

SHORT_S = 0.02
"""For how long turns are short after somebody asked who is no crowd: it will ask again, if it is quick."""


class Starts:
    """Tells which requests may begin, and begins the others; one for each server.

    Args:
        few: knows who is a crowd.

    Attributes:
        waiting: requests that are to begin.
    """

    def __init__(self, few: Few) -> None:
        self._few = few
        self.waiting = 0
        self._of: dict[str, deque[Callable[[], None]]] = {}  # those of each network
        self._begun: dict[str, int] = {}  # in this turn, of crowds, while turns are short
        self._short_until = 0.0

    def may(self, network: str) -> bool:
        """Whether a request may begin now; one that may not is to `wait`."""
        few = self._few
        if not few.crowded:
            return True
        now = monotonic()
        if not few.crowd(network):
            self._short_until = now + SHORT_S
            return True
        if network in self._of:
            return False
        if now >= self._short_until:
            return True
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._turn)
        begun = self._begun[network] = self._begun.get(network, 0) + 1
        return begun <= A_TURN

    def wait(self, network: str, start: Callable[[], None]) -> None:
        """Begin a request by a call of `start`, once it is its turn."""
        self.waiting += 1
        self._of.setdefault(network, deque()).append(start)

    def _turn(self) -> None:
        """The turn in which some began is over."""
        self._begun.clear()
        if not self._of:
            return
        asyncio.get_running_loop().call_soon(self._turn)
        short = monotonic() < self._short_until
        for network, starts in list(self._of.items()):
            count = self._begun[network] = min(A_TURN, len(starts)) if short else len(starts)
            if count == len(starts):
                del self._of[network]
            self.waiting -= count
            for _ in range(count):
                starts.popleft()()
