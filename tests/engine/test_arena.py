"""Scratch and the arrays in it: reused within its capacity, and apart from each other."""

from __future__ import annotations

import numpy as np

from engine.arena import LINE, PART_BYTES, SCRATCH_BYTES, SMALL_BYTES, Arena, aligned, scratch


def test_scratch_is_reused_within_its_capacity_and_its_parts_do_not_overlap() -> None:
    f4 = np.dtype(np.float32)
    elements = PART_BYTES // 4
    parts = [scratch(elements, f4, part) for part in range(3)]
    again = scratch(elements, f4, 1)
    assert np.shares_memory(parts[1], again)
    assert not any(np.shares_memory(parts[i], parts[j]) for i, j in ((0, 1), (1, 2), (0, 2)))
    assert scratch(elements + 1, f4).size == elements + 1


def test_an_arena_hands_out_its_scratch_once_and_then_other_memory() -> None:
    f4 = np.dtype(np.float32)
    arena = Arena()
    first = arena.take((3, 5), f4)
    kept = arena.used
    second = arena.take((7,), f4)
    assert second.ctypes.data - first.ctypes.data == LINE
    arena.used = kept
    assert np.shares_memory(arena.take((7,), f4), second)
    large = arena.take((SCRATCH_BYTES // 4,), f4)
    assert not np.shares_memory(large, scratch(16, f4))
    assert large.ctypes.data % LINE == 0
    assert np.shares_memory(arena.take((1,), f4), scratch(64, f4))


def test_large_arrays_begin_on_a_cache_line() -> None:
    f4 = np.dtype(np.float32)
    arrays = [aligned((2, n), f4) for n in (SMALL_BYTES // 8, 99_999)]
    arrays += [scratch(16, f4, part) for part in range(3)]
    assert [a.ctypes.data % LINE for a in arrays] == [0] * 5
    assert aligned((3, 0), f4).shape == (3, 0)
