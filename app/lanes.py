"""Who of many receives now: the large bodies, a few at a time, in turns among those who send them.

Received side by side, all of them would be whole late, and every one be held in part until then. Those
who wait are not read, so that their clients wait too, and take no memory here. Who sends slowly keeps
nobody waiting: others go past, and it is read beside them. Nor does who sends many keep others waiting: the
next is one of the caller who has the fewest turns, and among its own the one that began first.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from itertools import chain
from time import monotonic
from typing import Protocol

PACED_BYTES = 4 << 20
"""A body of fewer bytes waits for nobody."""

ROOM_BYTES = 16 << 20
"""Nobody begins while those before it have more to receive than this, together with it, unless fewer than
`LEAST` do."""

LEAST = 2
"""So many receive at once, however large they are: one client's turn to send is another's to be read."""

CALLERS = 4
"""So many callers, each with one body, receive at once, however large those are: who sends large ones one
after the other, no faster than it must, would have all others wait for the end of them. More share what the
server can receive in so many parts that all are whole late."""

LOOK_S = 0.05
"""How often it is seen who is slow, and who has something to receive, while somebody waits."""

FAST_BYTES = 1 << 20
"""Who receives fewer bytes from one look to the next is slow: 20 MiB/s."""


UNWANTED_RATE = 768 << 20
"""Bytes of large refused bodies in a second. Those who send and receive them are in the way of those who
compute: without a bound, 64 clients who send 50 MB again and again leave the workers nearly nothing."""


class Guest(Protocol):
    """Somebody who receives.

    Attributes:
        left: bytes that are still to come.
        caller: whose turn it uses.
    """

    left: int
    caller: str

    def ready(self) -> bool:
        """Whether some of them are there."""

    def gone(self) -> bool:
        """Whether nothing more is sent of what nobody wants."""

    def begin(self) -> None:
        """It is its turn."""


class Lane:
    """Gives turns to those who receive large bodies; used from one event loop.

    Args:
        rate: bytes that all together may receive in a second.
    """

    def __init__(self, rate: float = math.inf) -> None:
        self._rate = rate
        self._free = 0.0  # when what has been received does not count any more
        # Those who have a turn, and what was left of them at the last look.
        self._fast: dict[Guest, int] = {}
        # By caller, the one first whose turn is longest ago.
        self._waiting: dict[str, dict[Guest, None]] = {}
        self._look: asyncio.TimerHandle | None = None
        self._giving = False

    def enter(self, guest: Guest) -> None:
        """Have `begin` called, now or later; `leave` ends it in any case."""
        if guest.left < PACED_BYTES:
            guest.begin()
            return
        self._waiting.setdefault(guest.caller, {})[guest] = None
        self._go_on()

    def leave(self, guest: Guest) -> None:
        """It is whole, or nobody waits for it any more."""
        if guest in self._waiting.get(guest.caller, ()):
            self._wait_no_more(guest)
        if self._fast.pop(guest, None) is not None:
            self._go_on()

    def pause(self, nbytes: int) -> float:
        """For how many seconds a guest is to receive nothing more, after so many bytes."""
        now = monotonic()
        self._free = max(self._free, now) + nbytes / self._rate
        return self._free - now

    def _go_on(self) -> None:
        """Give turns, as far as there is room: first to those who have something to receive."""
        if self._giving:
            return  # somebody had no use for its turn; whoever gave it goes on
        self._giving = True
        try:
            self._give()
        finally:
            self._giving = False
        if self._waiting and self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._see)

    def _give(self) -> None:
        """Have guests begin until there is no room for the next."""
        while self._waiting:
            turns = Counter(each.caller for each in self._fast)
            # A sort keeps the order of equals.
            waiting = [
                self._waiting[caller] for caller in sorted(self._waiting, key=turns.__getitem__)
            ]
            first = next((each for each in chain.from_iterable(waiting) if each.ready()), None)
            guest = first or next(iter(waiting[0]))
            under_way = sum(each.left for each in self._fast)
            few = len(self._fast) < LEAST or (not turns[guest.caller] and len(turns) < CALLERS)
            if not few and under_way + guest.left > ROOM_BYTES:
                break
            self._wait_no_more(guest)
            if others := self._waiting.pop(guest.caller, None):
                self._waiting[guest.caller] = others
            # Who has something to receive is not found slow before it had a whole look's time for it.
            self._fast[guest] = guest.left + (FAST_BYTES if first else 0)
            guest.begin()

    def _wait_no_more(self, guest: Guest) -> None:
        """It has its turn, or needs none."""
        own = self._waiting[guest.caller]
        del own[guest]
        if not own:
            del self._waiting[guest.caller]

    def _see(self) -> None:
        """Let others past those who are slow, and have those begin, and so end, whose clients have gone."""
        self._look = None
        waiting = chain.from_iterable(self._waiting.values())
        for each in [guest for guest in waiting if guest.gone()]:
            self._wait_no_more(each)
            each.begin()
        slow = [each for each, left in self._fast.items() if left - each.left < FAST_BYTES]
        for each in slow:
            del self._fast[each]
        for each in self._fast:
            self._fast[each] = each.left
        self._go_on()


class Lanes:
    """The lanes of a server: of bodies that are wanted, and of those that were refused."""

    def __init__(self) -> None:
        self.wanted, self.unwanted = Lane(), Lane(UNWANTED_RATE)
