"""Scratch of elementwise functions: rows as long as a block, so that passes over it make no new arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import aligned

Array = NDArray[Any]

_BITS: dict[int, tuple[np.dtype[Any], Any]] = {
    4: (np.dtype(np.int32), np.int32(-1 << 31)),
    8: (np.dtype(np.int64), np.int64(-1 << 63)),
}


class Rows:
    """Rows by their numbers from 0 on; those that hold a constant are taken from the end.

    Attributes:
        mask: booleans, one for each element.
        bits: the integers of the elements' size, to view rows and tensors as.
        sign: the one of them in which nothing but the sign's bit is set.
    """

    def __init__(self, count: int, length: int, dtype: np.dtype[Any]) -> None:
        self._rows = aligned((count, length), dtype)
        self._filled: dict[float, Array] = {}
        self.mask = np.empty(length, bool)
        self.bits, self.sign = _BITS[dtype.itemsize]

    def __getitem__(self, number: int) -> Array:
        row: Array = self._rows[number]
        return row

    def filled(self, value: float) -> Array:
        """A row of this number: maximum and minimum take vector loops for arrays, and not for a number."""
        row = self._filled.get(value)
        if row is None:
            row = self._filled[value] = self[-1 - len(self._filled)]
            row.fill(value)
        return row

    def shorten(self, length: int) -> None:
        """Make all rows as long as a shorter block is."""
        self._rows = self._rows[:, :length]
        self._filled = {value: row[:length] for value, row in self._filled.items()}
        self.mask = self.mask[:length]
