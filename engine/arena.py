"""Memory that a thread keeps for its blocks of work, of a stated size, and arrays in it."""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART_BYTES = 3 << 19
"""One part of a thread's scratch; gathered patches, results and the other operand have one each."""

SCRATCH_BYTES = 3 * PART_BYTES
"""All scratch of one thread."""

LINE = 64
"""Bytes in a cache line, and in the widest vector."""

SMALL_BYTES = 1 << 18
"""Arrays below this size are not aligned to cache lines."""


class _State(threading.local):
    scratch: NDArray[np.uint8] | None = None
    beside = 0


_local = _State()


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array that begins on a cache line, where additions of float32 take half the time.

    A small one begins where it may: finding a line takes longer than it saves.
    """
    size = prod(shape) * dtype.itemsize
    if size < SMALL_BYTES:
        return np.empty(shape, dtype)
    memory = np.empty(size + LINE, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % LINE)


def scratch(elements: int, dtype: np.dtype[Any], part: int = 0) -> NDArray[Any]:
    """Part 0, 1 or 2 of this thread's scratch, as `elements` of `dtype`.

    Blocks are planned to fit. A single window larger than a part gets memory of its own.
    """
    size = elements * dtype.itemsize
    if size > PART_BYTES:
        _local.beside += 1
        return aligned((elements,), dtype)
    return _scratch()[part * PART_BYTES : part * PART_BYTES + size].view(dtype)


def part(number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Part 0, 1 or 2 of this thread's scratch, as an array of a shape."""
    return scratch(prod(shape), dtype, number).reshape(shape)


def beside_scratch() -> int:
    """How often this thread was given memory of its own, as its scratch was too small."""
    return _local.beside


def _scratch() -> NDArray[np.uint8]:
    if _local.scratch is None:
        _local.scratch = aligned((SCRATCH_BYTES,), np.dtype(np.uint8))
    return _local.scratch


class Arena:
    """Arrays one after another out of this thread's scratch, each from a cache line on.

    Those taken later give their place back when `used` is set to what it was before them. Blocks are
    planned to fit; what does not gets memory of its own.
    """

    def __init__(self) -> None:
        self.used = 0
        self._memory = _scratch()

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array of anything."""
        start, size = self.used, prod(shape) * dtype.itemsize
        if start + size > SCRATCH_BYTES:
            _local.beside += 1
            return aligned(shape, dtype)
        self.used = -(-(start + size) // LINE) * LINE
        return np.ndarray(shape, dtype, self._memory, start)
