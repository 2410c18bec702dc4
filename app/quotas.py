"""What one caller may ask: how often, and how much at once.

Pure: times are seconds on any one clock, given by the caller. The rate is held by the generic cell
rate algorithm (ITU-T I.371), which keeps one number for each caller: when its allowance is whole
again. Another is kept for those that were refused: when it would be, if all of them came as they were told.
So they are told one time after the other, as the allowance grows, and not all the same, and what they will
take is kept from those who come uninvited. What a caller may have under way is a queue of its own, with
permits and promises like that of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.admission import HELD, Admission, QueueLimits
from app.errors import RateLimited
from app.promises import CAPACITY, LATE_S, LONGEST_S, Capacity, Promises
from app.visitor import NOBODY, Visitor

FEW_CALLERS = 4096
"""So many are remembered without looking for those whose allowance is whole again."""

MOST_CALLERS = 16_384
"""Of more, half are forgotten, those whose allowance is whole soonest."""


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """Limits of each caller.

    Attributes:
        rate: requests per second; 0 for any number.
        burst: requests that may come at once after a rest.
        at_once: requests under way; 0 for any number.
    """

    rate: float
    burst: int
    at_once: int


class Quotas:
    """The account of every caller; those that are at rest are forgotten."""

    def __init__(self, limits: QuotaLimits) -> None:
        self._limits = limits
        self._whole: dict[str, float] = {}  # when a caller's allowance is whole again
        self._told: dict[str, float] = {}  # when it would be whole, if all the refused came
        self._promises: dict[str, Promises] = {}  # of those told
        self._under_way: dict[str, Admission] = {}
        self._capacity = Capacity()  # for all these promises
        self._clear_at = -math.inf
        # So many callers, in `_whole` and in `_under_way`, are remembered before it is seen who is at rest.
        self._forget_at = self._look_at = FEW_CALLERS

    def enter(self, caller: str, now: float, visitor: Visitor = NOBODY) -> None:
        """Count a request in; each that is let in must `leave`.

        Args:
            visitor: who of the caller's asks, to be known again after a refusal.

        Raises:
            RateLimited: it is one too many; says when the next will not be.
        """
        if self._capacity.left < CAPACITY / 2 and now >= self._clear_at:
            self._clear(now)
        # Whoever comes without a name may call in what was promised to any such of the caller's.
        visitor = visitor if visitor.name else visitor._replace(address=caller)
        permits = self._permits(caller, now) if self._limits.at_once else None
        if permits is not None:
            refusal = permits.refusal(0, now, visitor)
            if refusal is not None:
                permits.left(visitor)
                raise RateLimited(
                    f"{permits.requests} of your requests are under way; {self._limits.at_once} may be, "
                    "some of them those told to come now.",
                    retry_after=refusal.retry_after,
                )
        if self._limits.rate:
            try:
                self._spend(caller, now, visitor)
            except RateLimited:
                if permits is not None:
                    permits.left(visitor)  # any other of the caller's may call in what it could
                raise
        if permits is not None:
            permits.acquire(0, now, visitor)

    def leave(self, caller: str, now: float) -> None:
        """A request that was let in has ended."""
        permits = self._under_way.get(caller)
        if permits is not None:
            permits.release(0, now)

    def _permits(self, caller: str, now: float) -> Admission:
        """The queue of what a caller has under way, made where there is none."""
        permits = self._under_way.get(caller)
        if permits is None:
            if len(self._under_way) >= self._look_at:
                self._forget_idle(now)
            at_once = self._limits.at_once
            permits = self._under_way[caller] = Admission(
                QueueLimits(at_once, at_once), capacity=self._capacity
            )
        return permits

    def _clear(self, now: float) -> None:
        """Forget what those were promised who do not come any more, as it takes room from others."""
        self._clear_at = now + LATE_S
        for promises in self._promises.values():
            promises.advance(now)
        self._forget_idle(now)

    def _forget_idle(self, now: float) -> None:
        """Forget those at rest; where there are still too many, all that have nothing under way."""
        there = {name: each for name, each in self._under_way.items() if not each.at_rest(now)}
        if len(there) > MOST_CALLERS // 2:
            for each in there.values():
                if not each.requests:
                    each.close()
            there = {name: each for name, each in there.items() if each.requests}
        self._under_way = there
        self._look_at = max(FEW_CALLERS, 2 * len(there))

    def _spend(self, caller: str, now: float, visitor: Visitor) -> None:
        """Take one request from a caller's allowance; raises RateLimited where there is none left."""
        each = 1 / self._limits.rate
        # A thousandth of an interval is rounding, and refusing for it helps nobody.
        ahead = (self._limits.burst - 1 + 1e-3) * each
        whole = max(self._whole.get(caller, now), now)
        promises = self._promises.get(caller)
        promise = promises.claim(visitor, now) if promises else None
        kept = self._kept(promises, now, each) if promises and promise is None else 0.0
        if whole + kept * each - now > ahead:
            after = self._tell(caller, now, whole, each, ahead, visitor)
            rate = f"{self._limits.rate:g} requests/s"
            more = (
                f"More than max_caller_rate, {rate}; those that were told to come now count, too."
            )
            raise RateLimited(more, retry_after=after)
        if promises and promise is not None:
            promises.keep(promise)
        self._whole[caller] = whole + each
        if len(self._whole) > self._forget_at:
            self._forget(now)

    def _kept(self, promises: Promises, now: float, each: float) -> float:
        """How many requests are kept for those told to come before as many are allowed anew.

        Where one of them is missed, a part of what may come at once: mostly it has another name now.
        """
        burst = self._limits.burst
        held, _ = promises.held(now, min(burst * each, LONGEST_S))
        return min(held, burst if promises.trusted(now) else int(HELD * burst)) if held else 0.0

    def _forget(self, now: float) -> None:
        """Forget those of whom nothing is left, nor expected."""
        told = self._told = {name: when for name, when in self._told.items() if when > now}
        whole = self._whole.items()
        self._whole = {name: when for name, when in whole if when > now or name in told}
        if len(self._whole) > MOST_CALLERS:
            last = sorted(self._whole, key=self._whole.__getitem__)[-MOST_CALLERS // 2 :]
            self._whole = {name: self._whole[name] for name in last}
            self._told = {name: told[name] for name in last if name in told}
        for name in self._promises.keys() - self._told.keys():
            self._promises.pop(name).close()
        self._forget_at = min(max(FEW_CALLERS, 2 * len(self._whole)), MOST_CALLERS)

    def _tell(
        self, caller: str, now: float, whole: float, each: float, ahead: float, visitor: Visitor
    ) -> int:
        """In how many seconds, whole ones, since a `Retry-After` has no others, it may come too."""
        told = max(self._told.get(caller, whole), whole)
        wait = max(1, math.ceil(told - now - ahead))
        longest = max(LONGEST_S, math.ceil(whole - now - ahead))
        promises = self._promises.setdefault(caller, Promises(self._capacity))
        if wait <= longest:  # mostly those who are told so much later do not come
            self._told[caller] = max(told, now + wait) + each
            promises.note(visitor, now, now + wait)
        promises.loosen(visitor)
        return min(wait, longest)
