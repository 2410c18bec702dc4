"""Who was refused and told when to come again, so that coming again is worth it.

Under lasting overload newcomers would take every place that falls free, and those who wait as they
were told would be refused again. So a refusal's `Retry-After` is kept like a promise: whoever comes
back when told, under the same `X-Request-Id`, is let in before newcomers. Times are seconds on any
one clock, given by the caller.
"""

from __future__ import annotations

from collections import Counter

CAPACITY = 1 << 16
"""Promises kept; beyond it, the oldest are forgotten."""

EARLY_S = 0.25
"""How much before its time somebody may come: clocks and timers differ."""

LATE_S = 5.0
"""For how long after its time a promise is kept."""


LONGEST_S = 60
"""The latest that anybody is told to come, in seconds."""

SLOTS_PER_S = 5
"""Parts of a second, over which promises are spread."""

PROMISED = 0.5
"""Part of the places falling free in a second that is promised at most."""

LEAST_OBEDIENCE = 0.01
"""Where nobody comes back, so much more is promised than there is."""

OBEDIENCE_MEMORY = 64
"""Over about so many promises it is averaged how many are called in."""


class Promises:
    """What was promised to whom, the name being that of the request."""

    def __init__(self) -> None:
        # In the order of being made, which is about that of being due.
        self._due: dict[str, float] = {}
        self._taken: Counter[int] = Counter()
        self._obedience = 1.0

    def __len__(self) -> int:
        """How many are made and neither kept nor missed."""
        return len(self._due)

    def make(self, name: str, now: float, least: int, per_s: float) -> int:
        """Promise a place in the first second that has room for one more.

        Args:
            least: seconds from now that it takes at least, and at most `LONGEST_S`.
            per_s: places that fall free in a second.

        Returns:
            In how many seconds, whole ones, since a `Retry-After` has no others.
        """
        self._drop(name)
        most = PROMISED * per_s / max(self._obedience, LEAST_OBEDIENCE)
        in_s = least
        while in_s < LONGEST_S and not self._has_room(now + in_s, most):
            in_s += 1
        self._due[name] = now + in_s
        self._taken[_slot(now + in_s)] += 1
        if len(self._due) > CAPACITY:
            self._drop(next(iter(self._due)))
        return in_s

    def _has_room(self, due: float, per_s: float) -> bool:
        """Whether one more may come then; neither a second nor a part of it may be crowded."""
        last = _slot(due)
        second = [self._taken[slot] for slot in range(last - SLOTS_PER_S + 1, last + 1)]
        return sum(second) < per_s and second[-1] < max(1.0, per_s / SLOTS_PER_S)

    def any_due(self, now: float) -> bool:
        """Whether anybody was told to come about now."""
        self._forget(now)
        return bool(self._due) and next(iter(self._due.values())) - EARLY_S <= now

    def due(self, name: str, now: float) -> bool:
        """Whether somebody of that name was told to come about now."""
        due = self._due.get(name)
        return due is not None and due - EARLY_S <= now <= due + LATE_S

    def keep(self, name: str) -> None:
        """Somebody of that name was given a place, when it was due or before."""
        if self._due and self._drop(name):
            self._obedience += (1 - self._obedience) / OBEDIENCE_MEMORY

    def _forget(self, now: float) -> None:
        """Drop what nobody came for."""
        while self._due:
            name, due = next(iter(self._due.items()))
            if due + LATE_S >= now:
                return
            self._drop(name)
            self._obedience -= self._obedience / OBEDIENCE_MEMORY

    def _drop(self, name: str) -> bool:
        due = self._due.pop(name, None)
        if due is None:
            return False
        slot = _slot(due)
        self._taken[slot] -= 1
        if not self._taken[slot]:
            del self._taken[slot]
        return True


def _slot(due: float) -> int:
    return int(due * SLOTS_PER_S)
