"""What the tests of the engine share: small blocks, and who looks at memory and sizes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from engine import arena, resolve, threads
from engine.kernels import dispatch, weight_bytes
from engine.kernels.depthwise import banding, bounds, planes
from engine.kernels.direct import channels_last, interleaving, joined, pointwise, shifts
from engine.kernels.winograd import correlating, filtering, tile_costs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each part of the scratch that is asked for from here on."""
    found: list[int] = []
    real = arena.scratch

    def scratch(elements: int, dtype: np.dtype, part: int = 0) -> np.ndarray:
        found.append(elements * dtype.itemsize)
        return real(elements, dtype, part)

    monkeypatch.setattr(arena, "scratch", scratch)
    return found


@pytest.fixture
def traced() -> Iterator[None]:
    """Python and NumPy say what they allocate."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share all work, however little it is."""
    monkeypatch.setattr(threads, "SMALL_FLOPS", 0)
    monkeypatch.setattr(correlating, "BLOCK_FLOPS", 0)
    monkeypatch.setattr(filtering, "SHARED_WEIGHTS", 0)


@pytest.fixture
def threads_restored() -> Iterator[None]:
    """Afterwards as many threads as before."""
    before = threads.get_threads()
    yield
    threads.set_threads(before)


SMALLEST = (
    (banding, "LEAST_WORK"),
    (banding, "LEAST_IN_PLACE"),
    (channels_last, "LEAST_CHANNELS"),
    (channels_last, "LEAST_STRIDED"),
    (bounds, "LEAST_RUNS"),
    (bounds, "LEAST_SUMMED"),
    (filtering, "LEAST_WORK"),
    (interleaving, "LINE_FLOPS"),
    (interleaving, "LEAST_OUTPUTS"),
    (interleaving, "MOST_COLUMNS"),
    (interleaving, "MAP_FLOPS"),
    (interleaving, "SMALL_FLOPS"),
    (interleaving, "LEAST_PLACES"),
    (interleaving, "MANY_PLACES"),
    (planes, "LEAST_WORK"),
    (pointwise, "LEAST_CHANNELS"),
    (shifts, "LEAST_GATHERED"),
    (shifts, "LEAST_IN_PLACE"),
)
"""Below these, layers go other ways, as they have not enough to do for the calls that these take."""


@pytest.fixture
def as_large() -> Iterator[None]:
    """Layers go the way of large ones, however small: by tiles, bands and so on wherever those can be."""
    _forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_costs, "pay", lambda _: True)
        for module, bound in SMALLEST:
            patch.setattr(module, bound, 0)
        yield
    _forget()


@pytest.fixture(params=["by size", "as large"])
def either_way(request: pytest.FixtureRequest) -> None:
    """Layers as they are planned, and again as large ones are."""
    if request.param == "as large":
        request.getfixturevalue("as_large")


@pytest.fixture
def may_share() -> Iterator[None]:
    """Samples share products wherever BLAS has the same bits, as if nothing were known of its kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined, "UNLIKE", False)
        _forget()
        yield
    _forget()


def _forget() -> None:
    """Have every layer planned anew."""
    kept_elsewhere = (joined.suits, resolve._prepared)
    for kept in (*vars(dispatch).values(), *vars(weight_bytes).values(), *kept_elsewhere):
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


@pytest.fixture
def two_threads() -> Iterator[None]:
    """The engine has two threads during a test."""
    before = threads.get_threads()
    threads.set_threads(2)
    yield
    threads.set_threads(before)
