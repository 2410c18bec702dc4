"""How much the tensors of a large body come to, before it is read: as much as of the last one like it.

A body that is refused for want of room after it has come has cost as much to receive as one that is
computed, and its client sends it again. Its length tells of the inputs alone; what the outputs take
depends on the configuration, which the body holds.
"""

from __future__ import annotations

from app.record import Record

CAPACITY = 256
"""Kinds of bodies remembered; beyond it, all are forgotten."""


class Sizes:
    """Inputs and outputs by operation, action and length of the body; of large ones only."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int], int] = {}

    def remember(self, record: Record, length: int, nbytes: int) -> None:
        """The tensors of a body come to `nbytes`."""
        key = (record.operation, record.action, length)
        if key not in self._known and len(self._known) >= CAPACITY:
            self._known.clear()
        self._known[key] = nbytes

    def expected(self, record: Record, length: int) -> int:
        """What the tensors of a body may come to; what is not known counts as no more than its length."""
        return self._known.get((record.operation, record.action, length), length)
