"""What one caller may ask: how often, and how much at once.

Pure: times are seconds on any one clock, given by the caller. The rate is held by the generic cell
rate algorithm (ITU-T I.371), which keeps one number for each caller: when its allowance is whole
again. Another is kept for those that were refused: when it would be, if all of them came as they were told.
So they are told one time after the other, as the allowance grows, and not all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.errors import RateLimited

RETRY_S = 1.0
"""When to come back after too many at once; when one of them ends cannot be told."""

LONGEST_S = 60
"""The latest that anybody is told to come, unless its allowance takes longer by itself."""

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

    rate: float = 0.0
    burst: int = 1
    at_once: int = 0


class Quotas:
    """The account of every caller; those that are at rest are forgotten."""

    def __init__(self, limits: QuotaLimits) -> None:
        self._limits = limits
        self._whole: dict[str, float] = {}
        self._told: dict[str, float] = {}  # when it would be whole, if all the refused came
        self._under_way: dict[str, int] = {}
        self._forget_at = FEW_CALLERS

    def enter(self, caller: str, now: float) -> None:
        """Count a request in; each that is let in must `leave`.

        Raises:
            RateLimited: it is one too many; says when the next will not be.
        """
        at_once = self._limits.at_once
        under_way = self._under_way.get(caller, 0)
        if at_once and under_way >= at_once:
            raise RateLimited(
                f"{under_way} of your requests are under way, of at most {at_once}.",
                retry_after=RETRY_S,
            )
        if self._limits.rate:
            self._spend(caller, now)
        if at_once:
            self._under_way[caller] = under_way + 1

    def leave(self, caller: str) -> None:
        """A request that was let in has ended."""
        left = self._under_way.pop(caller, 1) - 1
        if left:
            self._under_way[caller] = left

    def _spend(self, caller: str, now: float) -> None:
        each = 1 / self._limits.rate
        # A thousandth of an interval is rounding, and refusing for it helps nobody.
        ahead = (self._limits.burst - 1 + 1e-3) * each
        whole = max(self._whole.get(caller, now), now)
        if whole - now > ahead:
            raise RateLimited(
                f"You send more than {self._limits.rate:g} requests per second.",
                retry_after=self._tell(caller, now, whole, each, ahead),
            )
        self._whole[caller] = whole + each
        if len(self._whole) > self._forget_at:
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Forget those of whom nothing is left, nor expected."""
        told = self._told = {name: when for name, when in self._told.items() if when > now}
        whole = self._whole.items()
        self._whole = {name: when for name, when in whole if when > now or name in told}
        if len(self._whole) > MOST_CALLERS:
            last = sorted(self._whole, key=self._whole.__getitem__)[-MOST_CALLERS // 2 :]
            self._whole = {name: self._whole[name] for name in last}
            self._told = {name: told[name] for name in last if name in told}
        self._forget_at = min(max(FEW_CALLERS, 2 * len(self._whole)), MOST_CALLERS)

    def _tell(self, caller: str, now: float, whole: float, each: float, ahead: float) -> int:
        """In how many seconds, whole ones, since a `Retry-After` has no others, it may come too."""
        told = max(self._told.get(caller, whole), whole)
        wait = max(1, math.ceil(told - now - ahead))
        longest = max(LONGEST_S, math.ceil(whole - now - ahead))
        if wait > longest:
            return longest  # mostly those who are told so much later do not come
        self._told[caller] = max(told, now + wait) + each
        return wait
