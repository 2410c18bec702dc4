"""Work that a thread offers to whoever waits for it.

Who does it may be the program's main thread, in which a signal raises an exception between any two
instructions. So no lock is held there, and nobody waits for a thread that has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from engine.errors import Stopped

POLL_S = 0.02
"""For so long one waits before looking whether somebody has left."""


class Offer:
    """Some work, which is done once or not at all."""

    def __init__(self, work: Callable[[], None], offers: Offers) -> None:
        self._work = work
        self._offers = offers
        # An iterator hands out its only item once, whichever thread asks.
        self._claims = iter((True,))
        self._doing = threading.Lock()
        self._doing.acquire()
        self._error: BaseException | None = None

    def do(self) -> None:
        """Do the work unless it was withdrawn; failures are for who offered it, interruptions for both."""
        if not next(self._claims, False):
            return
        try:
            self._work()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._doing.release()

    def withdraw(self) -> BaseException | None:
        """Take the offer back, or wait until the work is done; returns what it failed with."""
        if next(self._claims, False):
            return None
        while not self._doing.acquire(timeout=POLL_S):
            if self._offers.left:
                return self._error or Stopped()
        return self._error


class Offers:
    """Offered by threads that do a part of somebody's work, and done by that somebody.

    It is done while waiting for them, or at once if it is pressing.

    Attributes:
        left: whether that somebody does nothing of it any more.
    """

    def __init__(self) -> None:
        self.left = False
        self._pressing: SimpleQueue[Offer] = SimpleQueue()
        self._offered: SimpleQueue[Offer | None] = SimpleQueue()

    def add(self, work: Callable[[], None], *, pressing: bool) -> Offer:
        """Offer work; to be withdrawn when nothing is left of it."""
        offer = Offer(work, self)
        if pressing:
            self._pressing.put(offer)
        self._offered.put(offer)
        return offer

    def end(self) -> None:
        """Say that a thread offers nothing any more."""
        self._offered.put(None)

    def serve_pressing(self) -> None:
        """Do what is pressing, if anything is."""
        while not self._pressing.empty():
            # Nobody else takes offers.
            self._pressing.get_nowait().do()

    def serve(self, others: int) -> None:
        """Do what is offered until so many threads have said that they offer nothing any more."""
        while others:
            offer = self._offered.get()
            if offer is None:
                others -= 1
            else:
                offer.do()
