"""Memory that two sides see, that grows, shrinks, and leaves nothing behind."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.workers.arena import ALIGNMENT, PAGE, Arena, MappedFile, place
from app.workers.memory import KEEP_S, KEPT_ARENA_BYTES


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def arena(now: list[float]) -> Iterator[Arena]:
    made = Arena(capacity=1 << 20, keep=2 * PAGE, clock=lambda: now[0])
    yield made
    made.close()


def size(arena: Arena) -> int:
    return os.fstat(arena.fd).st_size


def test_what_one_side_writes_the_other_reads(arena: Arena) -> None:
    (region,), end = place([("x", "<f4", (3, 5))])
    arena.fit(end)
    theirs = MappedFile(os.dup(arena.fd))
    theirs.remap(arena.size)
    arena.view(region)[...] = np.arange(15).reshape(3, 5)
    assert theirs.view(region).tolist() == np.arange(15).reshape(3, 5).tolist()
    arena.stop = True
    assert theirs.stop
    arena.stop = False
    assert not theirs.stop
    os.close(theirs.fd)


def test_it_grows_up_to_its_capacity_and_no_further(arena: Arena) -> None:
    for wanted in (1, PAGE + 1, 5 * PAGE, arena.capacity):
        arena.fit(wanted)
        assert wanted <= size(arena) == arena.size <= arena.capacity
    with pytest.raises(MemoryError, match="cannot take"):
        arena.fit(arena.capacity + 1)


def test_it_shrinks_when_little_has_been_needed_for_a_while(arena: Arena, now: list[float]) -> None:
    arena.fit(100 * PAGE)
    now[0] += KEEP_S
    arena.fit(2 * PAGE)
    assert size(arena) >= 100 * PAGE, "stays for more of the same"
    arena.fit(3 * PAGE)
    now[0] += KEEP_S
    arena.fit(2 * PAGE)
    assert size(arena) >= 100 * PAGE, "more than it keeps was needed a moment ago"
    now[0] += 0.1
    arena.fit(2 * PAGE)
    assert size(arena) == 2 * PAGE
    arena.fit(100 * PAGE)
    arena.shrink()
    assert size(arena) == 2 * PAGE


def test_it_is_used_while_a_part_of_a_watched_view_is_left_and_does_not_shrink(
    arena: Arena,
) -> None:
    (region,), end = place([("y", "<f4", (4 * PAGE,))])
    arena.fit(end)
    assert not arena.used
    view = arena.view(region)
    arena.watch([view])
    view[...] = np.arange(4 * PAGE)
    part = view.reshape(PAGE, 4)[1:].reshape(-1).view(np.uint8).data
    del view
    assert arena.used
    before = size(arena)
    arena.shrink()
    assert size(arena) == before, "who reads it would be ended by the kernel"
    assert np.frombuffer(part, "<f4").tolist() == list(range(4, 4 * PAGE))
    del part
    assert not arena.used
    arena.shrink()
    assert size(arena) == 2 * PAGE


def test_what_is_too_large_to_wait_shrinks_at_once() -> None:
    arena = Arena(capacity=4 * KEPT_ARENA_BYTES, keep=PAGE)
    arena.fit(KEPT_ARENA_BYTES)
    assert arena.waits
    arena.fit(PAGE)
    assert size(arena) == KEPT_ARENA_BYTES
    arena.fit(KEPT_ARENA_BYTES + 1)
    assert arena.large
    assert not arena.waits
    arena.fit(PAGE)
    assert size(arena) == PAGE
    assert not arena.waits
    arena.close()


def test_it_is_never_smaller_than_what_is_seen_of_it(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    arena.fit(100 * PAGE)
    before = arena.size
    with monkeypatch.context() as without_memory:
        without_memory.setattr(mmap, "mmap", fail)
        arena.shrink()
        assert size(arena) == arena.size == before
        with pytest.raises(MemoryError, match="Cannot allocate"):
            arena.fit(before + 1)
        assert size(arena) >= arena.size == before
    arena.shrink()
    assert size(arena) == arena.size == 2 * PAGE


def test_views_outlive_growth_and_closing() -> None:
    arena = Arena(capacity=1 << 20, keep=PAGE)
    (region,), end = place([("x", "<i8", (4,))])
    arena.fit(end)
    view = arena.view(region)
    view[:] = [1, 2, 3, 4]
    arena.fit(1 << 19)
    arena.close()
    assert view.tolist() == [1, 2, 3, 4]


TENSORS = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["<f2", "<f4", "<f8", "|u1", "<i8"]),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
)


@given(st.lists(TENSORS, max_size=6))
def test_tensors_are_aligned_and_do_not_overlap(tensors: list[tuple[str, str, list[int]]]) -> None:
    regions, end = place(tensors)
    last = ALIGNMENT  # the stop flag lies before
    for region, (name, dtype, shape) in zip(regions, tensors, strict=True):
        assert (region.name, region.dtype, list(region.shape)) == (name, dtype, shape)
        assert region.offset % ALIGNMENT == 0
        assert region.offset >= last
        last = region.offset + int(np.prod(shape)) * np.dtype(dtype).itemsize
    assert end >= last


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="nothing reserves blocks of a disk")
def test_where_it_is_a_file_on_a_disk_it_has_what_it_promises(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.delattr(os, "memfd_create", raising=False)
    arena = Arena(capacity=1 << 20, keep=2 * PAGE, clock=lambda: now[0])
    arena.fit(5 * PAGE)
    assert os.fstat(arena.fd).st_blocks * 512 >= arena.size >= 5 * PAGE
    before = arena.size
    with monkeypatch.context() as on_a_full_disk:
        on_a_full_disk.setattr(os, "posix_fallocate", full)
        with pytest.raises(MemoryError, match="No space left"):
            arena.fit(50 * PAGE)
    assert arena.size == size(arena) == before
    arena.fit(50 * PAGE)
    assert os.fstat(arena.fd).st_blocks * 512 >= arena.size >= 50 * PAGE
    arena.close()
