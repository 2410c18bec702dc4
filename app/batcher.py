"""Who computes next, and with whom: a state machine without clock, futures or threads.

Rules:

1. Entries share a call only if their keys are equal: the same N-free call, the same types and
   shapes of what they bring, and parameters that are equal byte for byte. A fingerprint finds
   candidates; only the comparison of all bytes decides.
2. The next leader is the entry of least start tag (start-time fair queuing, Goyal, Vin and Cheng
   1996): a caller's entries are spaced by their work, and an idle caller starts at the tag of the
   first leader last served. One caller alone is served in the order of arrival; a caller with
   little work does not wait behind another's flood.
3. The leader's batch is filled from its group in the order of arrival, up to the first entry that
   would exceed a budget. A leader alone may exceed them: what one request may cost is decided
   before it gets here.
4. An entry marked `alone` never shares.
5. An entry whose deadline has passed is never handed out.
6. Small entries can also be asked for by themselves, in the same order among them; that leaves the
   clock of rule 2 alone, since it is no turn of those who wait.
7. A worker is told of several batches in one go, a trip, where all of their entries are brief: to
   tell it takes longer than to compute one. They are computed one after the other, each as if it
   were alone. Their leaders are taken by rule 2, up to the first that is not brief or would exceed a
   budget, and workers that are free each take their part.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from app.sameness import Parameters, fingerprint, same

MOST_CALLERS = 4096
"""Beyond this many, all callers start anew as idle ones."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Budgets of one call that several requests share.

    Attributes:
        requests: most requests, in a trip too; 1 switches batching off.
        rows: most samples.
        nbytes: most bytes of inputs and outputs.
        work: most of it, in floating-point operations; beyond that mates wait and gain nothing.
        small: an entry of no more work than this is small.
        trip_requests: most requests of several batches in a trip; their answers come at once, and
            others wait for the event loop meanwhile.
        trip_work: most work of several batches in a trip. For their bytes together, `nbytes` holds.
    """

    requests: int
    rows: int
    nbytes: int
    work: float = 2e9
    small: float = 0.0
    trip_requests: int = 16
    trip_work: float = 2e7


@dataclass(eq=False, slots=True, kw_only=True)
class Entry:
    """One request that waits.

    Attributes:
        call: everything that must be equal for two requests to share a call, less the parameters.
        parameters: C-contiguous arrays that the requests of a call share (weight, bias).
        rows: samples. nbytes: of inputs and outputs. work: in floating-point operations.
        caller: whose turn it uses.
        deadline: on the clock of `now`; None where there is none.
        alone: whether it must not share a call, nor a trip.
        brief: whether it is computed sooner than a worker is told.
        _tag: its start tag, and when it first came; kept when it is queued again.
        _place: where it waits; None where it does not.
    """

    call: Hashable
    parameters: Parameters
    rows: int
    nbytes: int
    work: float
    caller: str
    deadline: float | None = None
    alone: bool = False
    brief: bool = False
    _tag: tuple[float, int] | None = field(default=None, init=False)
    _place: _Place | None = field(default=None, init=False)


class _Group:
    """Entries that may share a call, in the order of arrival."""

    __slots__ = ("entries", "key", "parameters")

    def __init__(self, key: Hashable, parameters: Parameters) -> None:
        self.key = key
        self.parameters = parameters
        self.entries: dict[Any, None] = {}


@dataclass(slots=True)
class _Load:
    """What a trip has so far: how many entries, their bytes and their work, and whether all are brief."""

    entries: int = 0
    nbytes: int = 0
    work: float = 0.0
    brief: bool = True

    def add(self, entry: Entry) -> None:
        self.entries += 1
        self.nbytes += entry.nbytes
        self.work += entry.work
        self.brief = self.brief and _travels(entry)


class _Place:
    """Where an entry waits. Left empty when it goes, so that nothing keeps its tensors alive."""

    __slots__ = ("entry", "group")

    def __init__(self, entry: Any, group: _Group) -> None:
        self.entry = entry
        self.group = group


_Turn = tuple[tuple[float, int], int, _Place]
"""When an entry's turn is: its tag, then the order in which it was queued."""

E = TypeVar("E", bound=Entry)


class Batcher(Generic[E]):
    """The queue; see the rules above. Times are seconds on any one clock.

    Attributes:
        depth, nbytes: entries that wait, and their bytes. small_depth: of these entries, the small ones.
    """

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        # Groups that an entry may join, by key and fingerprints.
        self._open: dict[Hashable, _Group] = {}
        # Heaps, in which places of entries that are gone are left empty; small entries are in both.
        self._order: list[_Turn] = []
        self._small_order: list[_Turn] = []
        # By caller: the start tag of its next entry, at least. And the clock of rule 2.
        self._finish: dict[str, float] = {}
        self._virtual = 0.0
        self._count = itertools.count()
        self.depth = 0
        self.small_depth = 0
        self.nbytes = 0

    def add(self, entry: E) -> None:
        """Queue an entry; one that was handed out before takes its old place again."""
        if entry._tag is None:
            start = max(self._virtual, self._finish.get(entry.caller, 0.0))
            self._finish[entry.caller] = start + entry.work
            entry._tag = (start, next(self._count))
        entry._place = place = _Place(entry, self._group(entry))
        place.group.entries[entry] = None
        turn = (entry._tag, next(self._count), place)
        heapq.heappush(self._order, turn)
        if self._small(entry):
            heapq.heappush(self._small_order, turn)
            self.small_depth += 1
        self.depth += 1
        self.nbytes += entry.nbytes

    def take(self, now: float, share: int = 1, *, small: bool = False) -> list[list[E]]:
        """Hand out the batches of the next trip; none where nothing waits.

        Args:
            share: how many workers are free; each takes its part of a group, and of all that waits,
                so that requests run side by side rather than one after the other.
            small: whether only small entries are asked for.
        """
        order = self._small_order if small else self._order
        trip: list[list[E]] = []
        load, part = _Load(), -(-self.depth // share)
        while found := self._first(order, now):
            (start, _), leader = found
            if trip and not self._fits(leader, load):
                break
            if not small and not trip:
                # Not for those behind the leader: a worker may give them back, see `LONG_TRIP_S`, and who
                # comes meanwhile would have to wait for all of them.
                self._virtual = max(self._virtual, start)
            batch = self._fill(leader, now, share, load, small=small)
            trip.append(batch)
            for entry in batch:
                self._remove(entry)
                load.add(entry)
            if load.entries >= part or not load.brief:
                break
        self._trim()
        return trip

    def cancel(self, entry: E) -> bool:
        """Forget an entry that waits; False where it does not wait (any more)."""
        if entry._place is None:
            return False
        self._remove(entry)
        self._trim()
        return True

    def _group(self, entry: E) -> _Group:
        """The group that an entry belongs to, made where there is none."""
        if entry.alone or self._limits.requests == 1:
            return _Group(None, entry.parameters)
        key = (entry.call, *map(fingerprint, entry.parameters))
        group = self._open.get(key)
        # Parameters that differ behind one fingerprint open a new group in place of the old one:
        # each arrival is compared once, however many were made to collide.
        if group is None or not same(group.parameters, entry.parameters):
            group = self._open[key] = _Group(key, entry.parameters)
        return group

    def _fits(self, entry: E, load: _Load) -> bool:
        """Whether a trip that has a load takes one more entry."""
        return (
            _travels(entry)
            and load.entries < min(self._limits.requests, self._limits.trip_requests)
            and load.nbytes + entry.nbytes <= self._limits.nbytes
            and load.work + entry.work <= self._limits.trip_work
        )

    def _fill(self, leader: E, now: float, share: int, load: _Load, *, small: bool) -> list[E]:
        """A leader and those of its group, or the small ones, that budgets admit beside what there is."""
        assert leader._place is not None
        group, limits = leader._place.group, self._limits
        room = min(limits.requests, -(-len(group.entries) // share))
        batch, rows, together = [leader], leader.rows, copy(load)
        together.add(leader)
        for mate in group.entries:
            if len(batch) == room:
                break
            if mate is leader or _overdue(mate, now) or (small and not self._small(mate)):
                continue
            if load.entries and not self._fits(mate, together):
                break
            rows += mate.rows
            together.add(mate)
            if rows > limits.rows or together.nbytes > limits.nbytes or together.work > limits.work:
                break
            batch.append(mate)
        return batch

    def _first(self, order: list[_Turn], now: float) -> tuple[tuple[float, int], E] | None:
        """The entry that is next and its tag; those that are overdue are forgotten on the way."""
        while order:
            tag, _, place = order[0]
            entry: E | None = place.entry
            if entry is not None:
                if not _overdue(entry, now):
                    return tag, entry
                self._remove(entry)
            heapq.heappop(order)
        if not self.depth:
            self._finish.clear()
        return None

    def _small(self, entry: E) -> bool:
        return entry.work <= self._limits.small

    def _remove(self, entry: E) -> None:
        place = entry._place
        assert place is not None
        group = place.group
        del group.entries[entry]
        if not group.entries and self._open.get(group.key) is group:
            del self._open[group.key]
        entry._place = place.entry = None
        self.depth -= 1
        self.small_depth -= self._small(entry)
        self.nbytes -= entry.nbytes

    def _trim(self) -> None:
        """Bound what is remembered of entries and callers that are gone."""
        for order, depth in ((self._order, self.depth), (self._small_order, self.small_depth)):
            if len(order) > 64 + 2 * depth:
                order[:] = [item for item in order if item[-1].entry is not None]
                heapq.heapify(order)
        if len(self._finish) > MOST_CALLERS:
            self._finish.clear()


def _overdue(entry: Entry, now: float) -> bool:
    return entry.deadline is not None and entry.deadline <= now


def _travels(entry: Entry) -> bool:
    """Whether an entry may be in a trip of several batches."""
    return entry.brief and not entry.alone
