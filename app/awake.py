"""Idle processors that are kept awake while there is work; see `engine.wakefulness`.

A request goes from the system to the event loop, and often on to a worker and back. Each of them sleeps
until the one before wakes it, which takes longest where nobody else keeps its processor awake: with few
callers. A client that sends slowly, or reads slowly, keeps nobody awake.
"""

from __future__ import annotations

import asyncio

from engine.wakefulness import LINGER_S, Wakefulness


class Awake:
    """Holds it from the first job that is accepted until shortly after the last is done."""

    def __init__(self, wakefulness: Wakefulness) -> None:
        self._wakefulness = wakefulness
        self._busy = False
        self._idle_since = 0.0
        self._look_again: asyncio.TimerHandle | None = None

    def busy(self) -> None:
        """Something is under way."""
        self._busy = True
        self._wakefulness.hold()

    def idle(self) -> None:
        """Nothing is under way any more."""
        loop = asyncio.get_running_loop()
        self._busy = False
        self._idle_since = loop.time()
        # One timer for all that comes and goes meanwhile.
        if self._look_again is None and self._wakefulness.held:
            self._look_again = loop.call_later(LINGER_S, self._look)

    def close(self) -> None:
        """No more will come."""
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None
        self._wakefulness.close()

    def _look(self) -> None:
        self._look_again = None
        if self._busy:
            return
        loop = asyncio.get_running_loop()
        left = self._idle_since + LINGER_S - loop.time()
        if left > 0:
            self._look_again = loop.call_later(left, self._look)
        else:
            self._wakefulness.let_go()
