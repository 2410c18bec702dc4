"""How much the tensors of a large body come to, before it is read: as much as of the last one like it.

A body that is refused for want of room after it has come has cost as much to receive as one that is
computed, and its client sends it again. Its length tells of the inputs alone; what the outputs take
depends on the configuration, which the body holds.
"""

from __future__ import annotations

from typing import TypeVar

from app.record import Record
from app.routes.body import IN_PLACE_BYTES

CAPACITY = 1024
"""Kinds of bodies remembered, and as many of the callers' own; beyond it, all are forgotten."""

Key = TypeVar("Key")


class Sizes:
    """Inputs and outputs by operation, action and length of the body; small ones are not remembered.

    Who is refused for want of room is expected to ask for the same again, as long as nothing like it was
    computed; of others nothing follows from that. Else whoever asks for too much again and again would keep
    out all whose bodies are as long.
    """

    def __init__(self) -> None:
        self._computed: dict[tuple[str, str, int], int] = {}
        self._own: dict[tuple[str, str, str, int], int] = {}

    def asked(self, record: Record, caller: str, length: int, nbytes: int) -> None:
        """The tensors that a caller has asked for, whatever comes of it, come to `nbytes`."""
        kind = record.operation, record.action, length
        own = caller, *kind
        if length >= IN_PLACE_BYTES and not (own in self._own or kind in self._computed):
            _put(self._own, own, nbytes)

    def computed(self, record: Record, caller: str, length: int, nbytes: int) -> None:
        """The tensors that a caller asked for came to `nbytes`."""
        if length >= IN_PLACE_BYTES:
            kind = record.operation, record.action, length
            _put(self._computed, kind, nbytes)
            _put(self._own, (caller, *kind), nbytes)

    def expected(self, record: Record, caller: str, length: int) -> int:
        """What the tensors of a body may come to; what is not known counts as no more than its length."""
        kind = record.operation, record.action, length
        own = self._own.get((caller, *kind))
        return self._computed.get(kind, length) if own is None else own


def _put(known: dict[Key, int], key: Key, nbytes: int) -> None:
    if key not in known and len(known) >= CAPACITY:
        known.clear()
    known[key] = nbytes
