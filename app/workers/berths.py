"""Shared memory in which large bodies are received, so that workers read them where they lie.

There is a fixed number of places, each an arena that every worker can map. A place is free again once
nobody has the body in it, or a tensor of it, any more. Where all are taken, a body gets memory of the
server's own, and its tensors are copied to the worker that computes with them.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from numpy.typing import NDArray

from app.workers.arena import ALIGNMENT, PAGE, Arena, Region
from app.workers.memory import KEEP_S, KEPT_BYTES

BERTHS = 16
"""Places. Each costs every worker an open file, and no memory while it is not used."""

BODY_BYTES = 4 << 20
"""Bodies of fewer bytes are copied to the worker sooner than one would wait for such a place."""

TENSOR_BYTES = 1 << 20
"""So are tensors of fewer bytes in a body that has a place."""

WASTE = 4
"""A place of more than so many times a body's size is made smaller for it: it has grown in powers of two,
and so is less than two times as large as what it was needed for."""


class Lying(NamedTuple):
    """Where a tensor lies: in which place, of how many bytes, from which on. Plain, to be sent as it is."""

    berth: int
    size: int
    region: Region


def berth_bytes(body: int) -> int:
    """Most that a place for a body of so many bytes may have."""
    # It begins up to two times ALIGNMENT behind the beginning, and its tensor is aligned.
    return body + 2 * ALIGNMENT


class Berths:
    """The places; one set for each server.

    Args:
        capacity: bytes of the largest body.
        count: places.
        clock: tells the time in seconds.
    """

    def __init__(
        self, capacity: int, count: int = BERTHS, clock: Callable[[], float] = monotonic
    ) -> None:
        room = berth_bytes(capacity)
        self._arenas = [Arena(room, PAGE, "convoke-body", clock) for _ in range(count)]
        self._clock = clock

    @property
    def fds(self) -> list[int]:
        """Descriptors of the places' files, in order."""
        return [arena.fd for arena in self._arenas]

    def take(self, size: int, aligned: int = 0) -> memoryview | None:
        """A place for a body; None where it is too small to need one, or none is free.

        Args:
            size: bytes of the body.
            aligned: where in it that begins which is to be aligned.
        """
        free = [arena for arena in self._arenas if not arena.used]
        if size < BODY_BYTES or not free:
            return None
        start = ALIGNMENT + -aligned % ALIGNMENT
        end = start + size
        # The smallest that will do as it is; else the nearest, of which most is there already.
        fitting = range(end, WASTE * end + 1)
        arena = min(free, key=lambda each: (each.size not in fitting, abs(each.size - end)))
        if arena.size > WASTE * end:
            arena.shrink()  # nobody counts what is left in it of a larger body
        try:
            arena.fit(end)
        except MemoryError:
            return None
        view = arena.view(Region("body", "|u1", (size,), start))
        arena.watch([view])
        return view.data

    def find(self, name: str, array: NDArray[Any]) -> Lying | None:
        """Where a tensor lies, if it is large and in one of the places."""
        if array.nbytes < TENSOR_BYTES:
            return None
        address = array.__array_interface__["data"][0]
        for berth, arena in enumerate(self._arenas):
            offset = address - arena.address
            if 0 <= offset < arena.size:
                region = Region(name, array.dtype.str, array.shape, offset)
                return Lying(berth, arena.size, region)
        return None

    def tend(self) -> None:
        """Give memory back that has not been used for KEEP_S, and what is kept beyond KEPT_BYTES."""
        now, kept = self._clock(), 0
        for arena in sorted(self._arenas, key=lambda each: each.needed, reverse=True):
            if arena.large and not arena.used:
                kept += arena.size
                if kept > KEPT_BYTES or now - arena.needed > KEEP_S:
                    arena.shrink()

    def close(self) -> None:
        """Close the files, and give no more places; bodies that are left stay valid."""
        arenas, self._arenas = self._arenas, []
        for arena in arenas:
            arena.close()
