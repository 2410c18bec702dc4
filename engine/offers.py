"""Work that a thread offers to whoever waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

_Offer = tuple[Future[None], Callable[[], None]]


class Offers:
    """Offered by threads that do a part of somebody's work, and done by that somebody.

    It is done while waiting for them, or at once if it is pressing.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offered: deque[_Offer] = deque()
        self._pressing: deque[_Offer] = deque()

    def add(self, work: Callable[[], None], *, pressing: bool) -> Future[None]:
        """Offer work.

        To be cancelled by whoever offers it, if it has not begun when nothing is left of it.
        """
        offered: Future[None] = Future()
        with self._changed:
            (self._pressing if pressing else self._offered).append((offered, work))
            self._changed.notify()
        return offered

    def serve_pressing(self) -> None:
        """Do what is pressing, if anything is."""
        while self._pressing:
            # Nobody else takes offers.
            call(*self._pressing.popleft())

    def serve(self, others: Sequence[Future[Any]]) -> None:
        """Do what is offered until the work of all others is done, whether it fails or not."""
        for other in others:
            other.add_done_callback(self._wake)
        while (offer := self._next(others)) is not None:
            call(*offer)

    def _wake(self, _: Future[Any]) -> None:
        with self._changed:
            self._changed.notify()

    def _next(self, others: Sequence[Future[Any]]) -> _Offer | None:
        with self._changed:
            while True:
                for offers in (self._pressing, self._offered):
                    if offers:
                        return offers.popleft()
                if all(other.done() for other in others):
                    return None
                self._changed.wait()


def call(called: Future[Any], function: Callable[[], Any]) -> None:
    """Call a function unless its future was cancelled, and tell the future what came of it."""
    if not called.set_running_or_notify_cancel():
        return
    try:
        called.set_result(function())
    except BaseException as error:  # noqa: BLE001 - it is for whoever asks for the result
        called.set_exception(error)
        # The error's traceback leads here, from where nothing may lead back to it.
        del called
