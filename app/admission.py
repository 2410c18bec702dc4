"""What is let in: permits for requests by their number and bytes, and when the refused may come again.

Pure: times are seconds on any one clock, given by the caller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from app.density import SLOTS_PER_S
from app.draining import DrainRate
from app.errors import QueueFull
from app.promises import GRACE_S, LONGEST_S, Capacity, Promises
from app.visitor import NOBODY, Visitor

RETRY_MIN_S, RETRY_MAX_S = 1.0, float(LONGEST_S)
"""Bounds of `Retry-After`."""

HELD = 0.5
"""Most of the queue that is kept from newcomers for those who were told to come."""

SOLE_S = 0.1
"""For how long after its time the only place is held: nobody else has it meanwhile."""

GATHERED_S = 0.1
"""For how long before its time several places are held at least: a crowd may come, and the server halt."""

RESERVED = 0.25
"""Most of the queue that is taken by those whose bodies are still to come, and may never do."""

TOLD_S = 0.01
"""For how long the refused are told the same of the queue: working it out costs more than the rest."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """What may be accepted and not yet answered.

    Attributes:
        requests: how many; as many as bytes where these alone count.
        nbytes: inputs and outputs together, in bytes.
    """

    requests: int
    nbytes: int


class _Told(NamedTuple):
    """What the refused are told.

    Attributes:
        until: when it is to be worked out anew.
        least, per_s, room: see `Promises.make`.
        ahead: seconds in which as many places fall free as can be held, see `Promises.held`.
    """

    until: float
    detail: str
    least: int
    per_s: float
    room: float
    ahead: float


class Admission:
    """Permits for requests that are accepted and not yet answered, by count and bytes.

    Whoever was told to come about now finds a place: up to `HELD` of the queue, or its only place, is
    kept from newcomers for as many as were told so, from when it might not fall free again in time.
    Where there are several, the workers find enough to do either way.

    Args:
        what: is let in, for the refused.
        capacity: for promises, if it is shared.

    Attributes:
        requests, nbytes: that have permits.
        reserving, reserved: of these, those whose bodies are still to come.
        waiting: how many, of how many bytes, wait without one for their turn to send, by address.
    """

    def __init__(
        self, limits: QueueLimits, what: str = "requests", capacity: Capacity | None = None
    ) -> None:
        self._limits = limits
        self._what = what
        self._rate = DrainRate()
        self._promises = Promises(capacity)
        self._uncrowded = limits.requests * (1 - HELD)
        self._uncrowded_bytes = limits.nbytes * (1 - HELD)
        self._told = _Told(-math.inf, "", 0, 0.0, 0.0, 0.0)
        self.requests = 0
        self.nbytes = self.reserving = self.reserved = 0
        self.waiting: dict[str, tuple[int, int]] = {}

    def crowded(self, more: int) -> bool:
        """Whether `acquire` might refuse somebody, with so many more than have permits."""
        return self.requests + more > self._uncrowded or self.nbytes > self._uncrowded_bytes

    def refusal(
        self,
        nbytes: int,
        now: float,
        visitor: Visitor,
        ahead: int = 0,
        awaited: int = 0,
        *,
        expected: int = 0,
        placed: bool = False,
        waited: bool = False,
    ) -> QueueFull | None:
        """How `acquire` would refuse a request, before anything is done for it; None where it would not.

        Args:
            nbytes: that it has at least.
            ahead: requests that were let in and have not acquired their permits yet.
            awaited: bytes of these, where they wait for their turn to send.
            expected: bytes that are promised to it, where that is more.
            placed: it has had a place until now, and only more bytes are asked for; alone it gets them.
            waited: it was let in and waited for its turn, and others were told to come after it.
        """
        asked = max(nbytes, expected)
        held, nbytes = self.requests + ahead, self.nbytes + awaited + nbytes
        # Mostly there is room, and nothing promised that this visitor could call in.
        if held < self._uncrowded and nbytes <= self._uncrowded_bytes and not self._promises:
            return None
        limits = self._limits
        if not held or (held < limits.requests and nbytes <= limits.nbytes):
            room = waited or (placed and not held) or self._leaves_room(held, nbytes, now, placed)
            if room or self._promises.claim(visitor, now, early=self._early(held)) is not None:
                return None
        return self._refusal(held, awaited, asked, now, visitor)

    def acquire(
        self,
        nbytes: int,
        now: float,
        visitor: Visitor = NOBODY,
        reserved: int = 0,
        *,
        waited: bool = False,
    ) -> None:
        """Take a permit. Whatever was accepted singly by cost is let in when nothing else is.

        Args:
            reserved: bytes of a permit just given back; for no more than these nobody is refused.
            waited: see `refusal`.

        Raises:
            QueueFull: there is no room; says when there will be.
        """
        if not reserved or nbytes > reserved:
            refusal = self.refusal(nbytes, now, visitor, placed=reserved > 0, waited=waited)
            if refusal is not None:
                raise refusal
        # Who had reserved a place was given what it was promised then.
        if self._promises and not reserved:
            crowded = self.crowded(1)
            leaves = crowded and self._leaves_room(self.requests, self.nbytes + nbytes, now)
            # Where it is crowded, those who have a place anyway leave promises to those who have none else.
            grace = GRACE_S if leaves and not visitor.name else 0.0
            early = self._early(self.requests) if crowded and not leaves else 0.0
            if visitor.name:
                early = math.inf  # it does not come for its promise any more, once it is let in
            promise = self._promises.claim(visitor, now, grace, early)
            if promise is not None:
                self._promises.keep(promise)
        self._rate.advance(now, busy=self._busy)
        self.requests += 1
        self.nbytes += nbytes

    def may_reserve(self, nbytes: int) -> bool:
        """Whether a place is kept for so large a body, if there is room for it at all."""
        few = self.reserving < max(1, int(RESERVED * self._limits.requests))
        return few and self.reserved + nbytes <= RESERVED * self._limits.nbytes

    def reserve(self, nbytes: int, now: float, visitor: Visitor, *, waited: bool = False) -> None:
        """Take a permit for somebody whose body is still to come.

        Args:
            waited: see `refusal`.

        Raises:
            QueueFull: there is no room.
        """
        self.acquire(nbytes, now, visitor, waited=waited)
        self.reserving += 1
        self.reserved += nbytes

    def unreserve(self, nbytes: int) -> None:
        """Give such a permit back."""
        self.reserving -= 1
        self.reserved -= nbytes
        self.requests -= 1
        self.nbytes -= nbytes

    def refusal_behind(self, nbytes: int, now: float, visitor: Visitor) -> QueueFull | None:
        """`refusal` of who may have to wait for its turn to send, behind those of its address who do.

        Else it would be refused only once it is its turn, which takes long, or take what is left from them.
        Those of other addresses do not count: who lets many wait and sends nothing is to harm nobody else.
        """
        ahead, awaited = self.waiting.get(visitor.address, (0, 0))
        return self.refusal(nbytes, now, visitor, ahead, awaited)

    def wait(self, nbytes: int, address: str) -> None:
        """Somebody without a permit waits for its turn to send."""
        count, awaited = self.waiting.get(address, (0, 0))
        self.waiting[address] = count + 1, awaited + nbytes

    def wait_no_more(self, nbytes: int, address: str) -> None:
        """It is its turn, or it has gone."""
        count, awaited = self.waiting.pop(address)
        if count > 1:
            self.waiting[address] = count - 1, awaited - nbytes

    def left(self, visitor: Visitor) -> None:
        """A connection has been closed."""
        self._promises.loosen(visitor)

    def at_rest(self, now: float) -> bool:
        """Whether nobody has a permit, nor was told to come for one."""
        self._promises.advance(now)
        return not self.requests and not self._promises

    def close(self) -> None:
        """Nobody will ask any more."""
        self._promises.close()

    @property
    def _busy(self) -> bool:
        """Whether there is something to work on."""
        return self.requests > self.reserving

    def _leaves_room(self, held: int, nbytes: int, now: float, placed: bool = False) -> bool:
        """Whether one more than those held, with so many bytes in all, leaves room for those told to come.

        Where there is one place only, nobody has it meanwhile, so it is kept for those who can be trusted.
        """
        limits = self._limits
        # As many as have permits now show how many there can be of their size.
        each = self.nbytes / self.requests if self.requests else nbytes
        places = min(limits.requests, limits.nbytes / each) if each else limits.requests
        others = limits.requests - held - 1
        most = others if placed else limits.requests
        most = min(most, int(HELD * places) or int(self._promises.trusted(now, SOLE_S)))
        told, asked = self._promises.held(now, self._told.ahead)
        # Those told to come may ask for more than those have who have permits; nobody stands idle for it.
        if asked > HELD * limits.nbytes:
            alone = held > 0 and told <= 1 and self._promises.trusted(now)
            asked = asked if alone else HELD * limits.nbytes
        kept = min(told, most)
        room = max(kept * each, asked)
        return not kept or (kept <= others and nbytes + room <= limits.nbytes)

    def _early(self, held: int) -> float:
        """How early a promise may be called in: while nobody has the place, whom it is kept for may."""
        return 0.0 if held else self._told.ahead + 1 / SLOTS_PER_S

    def _refusal(
        self, held: int, awaited: int, asked: int, now: float, visitor: Visitor
    ) -> QueueFull:
        """The refusal of a request: after the queue has drained there is room, and promised."""
        told = self._told
        if awaited:
            # Others are not behind those who wait, but leave places to those who were told so.
            told = self._tell(held, awaited, now)
            self._told = self._told._replace(ahead=told.ahead)
        elif now >= told.until:
            told = self._told = self._tell(held, 0, now)
        after = self._promises.make(visitor, now, told.least, told.per_s, told.room, asked)
        return QueueFull(told.detail, retry_after=after)

    def _tell(self, held: int, awaited: int, now: float) -> _Told:
        limits = self._limits
        self._rate.advance(now, busy=self._busy)
        there, nbytes = max(held - self.reserving, 1), self.nbytes + awaited
        drained = self._rate.time_for(there, nbytes - self.reserved)
        count = f"{limits.requests} {self._what} and " if limits.requests < limits.nbytes else ""
        detail = (
            f"{held} {self._what} with {nbytes} bytes wait; "
            f"the queue takes {count}{limits.nbytes} bytes, and keeps some for those told to come now."
        )
        least = math.ceil(min(max(drained, RETRY_MIN_S), RETRY_MAX_S))
        # Before anything was measured, the queue is taken to drain in the least time.
        per_s, room = there / (drained or RETRY_MIN_S), max(HELD * held, 1.0)
        ahead = max(room / per_s, GATHERED_S if room > 1 else 0.0)
        return _Told(now + TOLD_S, detail, least, per_s, room, min(ahead, LONGEST_S))

    def release(self, nbytes: int, now: float) -> None:
        """Give a permit back: the request was answered or has gone."""
        self._rate.advance(now, busy=True)
        self._rate.drained(nbytes)
        self.requests -= 1
        self.nbytes -= nbytes
        if self._promises and not self.requests:
            # Nobody may be refused for days, and whoever is let in would look at promises of long ago.
            self._promises.advance(now)
