"""A place in the queue for a body that is still to come.

Without it, those whose bodies are whole first would take the place that there was when a body began to be
sent, and it would be refused after all of it has come. A place is kept for as long as the body comes fast
enough; who is slower, or sends nothing, asks again once the body is whole.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from app.admission import Admission
from app.lanes import PACED_BYTES
from app.record import Record
from app.visitor import Visitor

LOOK_S = 1.0
"""How often it is seen whether the body comes fast enough."""

FAST_BYTES = 1 << 20
"""Bytes from one look to the next with which it does: a line of 8 Mbit/s."""


class Reservation:
    """A permit of `Admission` for a body that is not whole, where so many may be kept.

    Args:
        nbytes: that are reserved.
        record: of the request, which tells what has come.

    Raises:
        QueueFull: there is no room.
    """

    def __init__(self, admission: Admission, nbytes: int, visitor: Visitor, record: Record) -> None:
        self._admission = admission
        self._visitor = visitor
        self._record = record
        self._asked = nbytes
        self._nbytes = 0  # that are reserved now
        self._waits = self._waited = False
        self._come = 0
        self._look: asyncio.TimerHandle | None = None
        if record.body_length >= PACED_BYTES:
            refusal = admission.refusal_behind(nbytes, monotonic(), visitor)
            if refusal is not None:
                raise refusal
        self.begin()

    def begin(self) -> None:
        """The client is to send from now on.

        Raises:
            QueueFull: it has no place, and there is no room any more.
        """
        self._wait_no_more()
        if not self._nbytes:
            self._ask(monotonic())
        self._watch()

    def pause(self) -> None:
        """It is not, for it is not read."""
        self._watch_no_more()
        if not (self._nbytes or self._waits):
            self._waits = self._waited = True
            self._admission.wait(self._asked, self._visitor.address)

    def end(self) -> None:
        """The place is not needed, or was taken."""
        self._watch_no_more()
        self._wait_no_more()
        if self._nbytes:
            self._admission.unreserve(self._nbytes)
            self._nbytes = 0

    def take(self, nbytes: int, now: float) -> None:
        """The body is whole: turn the place into a permit.

        Raises:
            QueueFull: there is no place any more, or not for so many bytes.
        """
        reserved = self._nbytes
        self.end()
        self._admission.acquire(nbytes, now, self._visitor, reserved, waited=self._waited)

    def _ask(self, now: float) -> None:
        if self._admission.may_reserve(self._asked):
            self._admission.reserve(self._asked, now, self._visitor, waited=self._waited)
            self._nbytes = self._asked
            return
        refusal = self._admission.refusal(self._asked, now, self._visitor, waited=self._waited)
        if refusal is not None:
            raise refusal

    def _watch(self) -> None:
        self._come = self._record.bytes_in
        if self._nbytes and self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._see)

    def _watch_no_more(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _wait_no_more(self) -> None:
        if self._waits:
            self._waits = False
            self._admission.wait_no_more(self._asked, self._visitor.address)

    def _see(self) -> None:
        self._look = None
        if self._record.bytes_in - self._come < FAST_BYTES:
            self.end()
        else:
            self._watch()
