"""Who was refused and told when to come again, so that coming again is worth it.

Under lasting overload newcomers would take every place that falls free, and those who wait as they
were told would be refused again. So a refusal's `Retry-After` is kept like a promise: around its
time a place is held for whoever comes back. They are known again by the request's `X-Request-Id`;
where the client gives none, by their connection; and where they ask over that connection before
their time, or close it, by their address, which takes its promises in the order of their times.

Promises are spread, so that those who come back can be let in (`app/density.py`). Times are seconds on
any one clock, given by the caller.
"""

from __future__ import annotations

import heapq
import itertools

from app.density import SLOTS_PER_S, density
from app.visitor import Key, Visitor

CAPACITY = 1 << 17
"""Promises that are open at once, at most, of all that share it; see `Capacity`."""

EARLY_S = 0.25
"""How much before its time somebody with a name may come: clocks and timers differ."""

EARLY_NAMELESS_S = 0.005
"""How much before its time somebody may come over the connection that was told. Who comes earlier is likely
somebody else: an answer takes a while to get there, and a request to get here."""

GRACE_S = 0.05
"""For how long from its time on a promise is left to those who have no place without it, where of nobody
more than the address is known."""

LATE_S = 5.0
"""For how long after its time a promise is kept, if there is room."""

HELD_S = 0.5
"""For how long after its time a place is held for it."""

LONGEST_S = 60
"""The latest that anybody is told to come, in seconds."""

LONGEST_NAMELESS_S = 20
"""The same for those who may not be known again: there is no telling whether they come."""

OBEDIENCE_MEMORY = 64
"""Over about so many promises it is averaged how many are called in."""

MOSTLY = 0.5
"""Part of the promises called in with which those who are told to come are trusted to."""


class Capacity:
    """Room for promises, shared by several `Promises`: each may have as many as there is room for more.

    So one who is told to come again and again leaves room for the others.
    """

    def __init__(self) -> None:
        self.left = CAPACITY


class Promises:
    """What was promised to whom.

    Args:
        capacity: if it is shared.
    """

    def __init__(self, capacity: Capacity | None = None) -> None:
        self._capacity = capacity or Capacity()
        self._due: dict[Key, float] = {}  # of all that are open
        self._address: dict[Key, str] = {}  # that may call it in, where no visitor's key does
        self._loose: dict[str, list[tuple[float, int]]] = {}  # heaps of such, by address
        # For how many bytes each is, by the part of a second of its time; and how many, by the second.
        self._slots: dict[int, dict[Key, int]] = {}
        self._seconds: dict[int, int] = {}
        self._oldest = 0
        self._found = (0, 0, 0)  # of the promise made last: the part of a second, least, its wait
        self._left = 0.0  # how many more find room where the last one did
        self._held_in = range(0)  # the parts of a second for which `held` was counted last
        self._held = self._held_bytes = 0
        self._order = itertools.count(1)
        self._obedience = 1.0

    def __len__(self) -> int:
        """How many are open."""
        return len(self._due)

    def make(
        self, visitor: Visitor, now: float, least: int, per_s: float, room: float, nbytes: int = 0
    ) -> int:
        """Promise a place in the first second that has room for one more.

        Args:
            least: seconds from now that it takes at least, and at most `LONGEST_S`.
            per_s: places that fall free in a second. room: that can be held for promises.
            nbytes: that the visitor asks for.

        Returns:
            In how many seconds, whole ones, since a `Retry-After` has no others.
        """
        key = visitor.key
        if not key:
            return least
        at = _slot(now)
        last, from_s, found = self._found
        again = last == at and from_s == least
        longest = max(least, LONGEST_S if visitor.name else LONGEST_NAMELESS_S)
        # Those who are refused in one part of a second look in the same places, one after the other.
        if again and self._left > 0 and key not in self._due and found < longest:
            self._left -= 1
            self._file(key, now + found, nbytes)
            return found
        self._renew(key, now)
        most = density(per_s, room, self._obedience, LONGEST_S)
        seconds, slots = self._seconds.get, self._slots.get
        self._left = 0.0
        first = found if again else least
        for in_s in range(first, longest):
            due = now + in_s
            second, slot = int(due), _slot(due)
            # Neither a second nor a part of it, nor the parts around, may be crowded.
            around = range(slot - most.beside, slot + most.beside + 1)
            crowd = sum([len(slots(each, ())) for each in around])
            here = len(slots(slot, ()))
            left = min(
                most.in_second - seconds(second, 0), most.in_slot - here, most.at_once - crowd
            )
            if left > 0 and not any(seconds(second - back, 0) for back in range(most.apart)):
                self._file(key, due, nbytes)
                self._found, self._left = (at, least, in_s), left - 1
                return in_s
        self._found = at, least, max(first, longest - 1)
        return longest

    def note(self, visitor: Visitor, now: float, due: float) -> None:
        """A place was promised for a time that was found elsewhere."""
        key = visitor.key
        if key:
            self._renew(key, now)
            self._file(key, due)

    def claim(
        self, visitor: Visitor, now: float, grace: float = 0.0, early: float = 0.0
    ) -> Key | None:
        """The promise that a visitor may call in now, if there is one; `keep` calls it in.

        One that any visitor of the address may is this one's own from then on, so that those who come
        before it is called in find the next.

        Args:
            grace: seconds from its time on in which it is not, where any visitor of an address may.
            early: seconds before its time in which it is, where this visitor alone may.
        """
        key = visitor.key
        due = self._due.get(key)
        early = max(early, EARLY_S if visitor.name else EARLY_NAMELESS_S)
        if due is not None and due - early <= now <= due + LATE_S:
            return key
        if visitor.name:
            return None
        if due is not None and now < due:
            # Others ask over this connection meanwhile; there is no telling who will come over it.
            self.loosen(visitor)
        self.advance(now)  # who comes too late for one may be in time for the next
        loose = self._loose.get(visitor.address)
        if not loose:
            return None
        due, number = loose[0]
        if not due + grace <= now <= due + LATE_S:
            return None
        if not key:
            return -number
        nbytes = self._drop(-number)
        self._renew(key, now)
        self._file(key, due, nbytes, again=True)
        return key

    def keep(self, key: Key) -> None:
        """Somebody came for a promise, and was given a place."""
        self._drop(key)
        self._obedience += (1 - self._obedience) / OBEDIENCE_MEMORY

    def loosen(self, visitor: Visitor) -> None:
        """What was promised over a connection is henceforth promised to its address."""
        due = self._due.get(visitor.connection)
        if due is not None:
            number = next(self._order)
            self._file(-number, due, self._drop(visitor.connection), again=True)
            self._address[-number] = visitor.address
            heapq.heappush(self._loose.setdefault(visitor.address, []), (due, number))

    def held(self, now: float, ahead: float = 0.0) -> tuple[float, float]:
        """For how many who were told to come about now a place is to be held, and of how many bytes in all.

        Args:
            ahead: seconds before its time from which one is: in which places taken now fall free again.
        """
        within = range(_slot(now - HELD_S), _slot(now + ahead) + 1)
        if within != self._held_in:
            of = self._slots.get
            slots = [each for slot in within if (each := of(slot))]
            self._held = sum(map(len, slots))
            self._held_bytes = sum([sum(each.values()) for each in slots])
            self._held_in = within
        return self._obedience * self._held, self._obedience * self._held_bytes

    def trusted(self, now: float, held_s: float = HELD_S) -> bool:
        """Whether those who are told to come do, for the most part, and none was missed before so long."""
        missed = range(_slot(now - LATE_S), _slot(now - held_s))
        return self._obedience > MOSTLY and not any(slot in self._slots for slot in missed)

    def advance(self, now: float) -> None:
        """Forget what nobody came for."""
        last = _slot(now - LATE_S)
        while self._slots and self._oldest < last:
            for key in list(self._slots.get(self._oldest, ())):
                self._drop(key)
                self._obedience -= self._obedience / OBEDIENCE_MEMORY
            self._oldest += 1
        self._oldest = last  # days may have passed since somebody was refused

    def close(self) -> None:
        """Forget all, which leaves their room to others."""
        for key in list(self._due):
            self._drop(key)

    def _renew(self, key: Key, now: float) -> None:
        """Whoever it is for is promised one thing only."""
        self.advance(now)
        if key in self._due:  # which `advance` may have forgotten
            self._drop(key)

    def _file(self, key: Key, due: float, nbytes: int = 0, *, again: bool = False) -> None:
        """Make a promise, unless there are too many; one that was there until now is made `again`."""
        if not again and len(self._due) >= self._capacity.left:
            return
        self._capacity.left -= 1
        self._due[key] = due
        slot, second = _slot(due), int(due)
        if slot in self._held_in:
            self._held += 1
            self._held_bytes += nbytes
        self._slots.setdefault(slot, {})[key] = nbytes
        self._seconds[second] = self._seconds.get(second, 0) + 1

    def _drop(self, key: Key) -> int:
        """Forget a promise; tells for how many bytes it was."""
        due = self._due.pop(key)
        self._capacity.left += 1
        slot, second = _slot(due), int(due)
        nbytes = self._slots[slot].pop(key)
        if slot in self._held_in:
            self._held -= 1
            self._held_bytes -= nbytes
        if not self._slots[slot]:
            del self._slots[slot]
        self._seconds[second] -= 1
        if not self._seconds[second]:
            del self._seconds[second]
        address = self._address.pop(key, None)
        if address is not None:
            # Of an address's promises the earliest is called in or forgotten first.
            loose = self._loose[address]
            while loose and -loose[0][1] not in self._due:
                heapq.heappop(loose)
            if not loose:
                del self._loose[address]
        return nbytes


def _slot(due: float) -> int:
    return int(due * SLOTS_PER_S)
