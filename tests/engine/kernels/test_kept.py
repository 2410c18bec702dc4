"""Views that each thread keeps: made once, bounded, and none with memory of their own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import numpy as np
import pytest

from engine.arena import PART_BYTES, SCRATCH_BYTES, Arena, scratch
from engine.kernels.kept import MOST, kept


def test_what_was_made_is_given_again() -> None:
    made = []

    @kept
    def views(size: int, name: str) -> list[object]:
        made.append((size, name))
        return [size, name]

    assert views(2, "a") is views(2, "a")
    assert views(2, "b") == [2, "b"]
    assert made == [(2, "a"), (2, "b")]


def test_threads_share_nothing() -> None:
    @kept
    def views(size: int) -> list[int]:
        return [size]

    others: list[list[int]] = []
    thread = Thread(target=lambda: others.append(views(1)))
    thread.start()
    thread.join()
    assert others == [[1]]
    assert views(1) is not others[0]


def test_functions_share_nothing() -> None:
    assert kept(lambda size: [size])(1) is not kept(lambda size: [size])(1)


def test_what_was_made_is_given_up_before_it_is_too_much() -> None:
    alive = set()

    class View:
        def __init__(self, size: int) -> None:
            self.size = size
            alive.add(size)

        def __del__(self) -> None:
            alive.discard(self.size)

    views = kept(View)
    for size in range(3 * MOST):
        views(size)
        assert size in alive
        assert len(alive) <= MOST + 1


@pytest.mark.parametrize("take", [scratch, lambda size, dtype: Arena().take((size,), dtype)])
def test_what_found_no_room_in_the_scratch_is_not_kept(take: Callable[..., object]) -> None:
    @kept
    def views(size: int) -> object:
        return take(size, np.dtype(np.uint8))

    assert views(PART_BYTES) is views(PART_BYTES)
    assert views(SCRATCH_BYTES + 1) is not views(SCRATCH_BYTES + 1)


def test_what_is_kept_can_be_given_up() -> None:
    views = kept(lambda size: [size])
    first = views(1)
    views.cache_clear()
    assert views(1) is not first
