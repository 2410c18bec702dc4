"""Maxima of windows and where they stand, against loops over windows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import threads
from engine.arena import SCRATCH_BYTES, beside_scratch
from engine.geometry import Axis, tiles
from engine.kernels.pools import tracing
from engine.kernels.pools.fitting import argmax_blocks
from engine.kernels.pools.pooling import Pooling
from tests.engine.kernels.maxima import AXES, check_answers, drawn, gradient
from tests.engine.reference import pools

LAYERS: list[dict[str, Any]] = [
    {"size": (40,), "kernel": [13], "padding": 6},
    {"size": (11, 9), "kernel": [7, 5], "padding": [[3, 3], [0, 2]]},
    {"size": (9, 30), "kernel": [1, 12], "dilation": [1, 2], "padding": [[0, 0], [3, 3]]},
    {"size": (6, 5, 7), "kernel": [5, 4, 3], "padding": [[1, 2], [2, 2], [0, 1]]},
]

MORE_AXES: list[tuple[Axis, ...]] = [
    (Axis(9, 1, 3, 1, 0, 0, 3), Axis(10, 1, 4, 1, 1, 0, 3)),
    (Axis(20, 9, 1, 1, 4, 4, 20), Axis(11, 5, 4, 2, 2, 2, 2)),
    (Axis(12, 6, 2, 1, 2, 2, 6), Axis(31, 8, 3, 3, 0, 3, 5)),
]


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = threads.get_threads()
    monkeypatch.setattr(threads, "SMALL_FLOPS", 0)
    monkeypatch.setattr(tracing, "LEAST", 0)
    monkeypatch.setattr(tracing, "MANY", 0)
    monkeypatch.setattr(tracing, "MANY_IN_RUNS", 0)
    tracing.suits.cache_clear()
    yield
    threads.set_threads(before)
    tracing.suits.cache_clear()


def pooling(size: int, kernel: int, pad: int, channels: int = 3, *, last: bool = False) -> Pooling:
    axis = Axis(size, kernel, 1, 1, pad, pad, size + 2 * pad - kernel + 1)
    return Pooling((axis, axis), channels, last)


def test_what_suits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    tracing.suits.cache_clear()
    assert tracing.suits(pooling(13, 13, 6, 256))
    assert tracing.suits(pooling(13, 9, 4, 256, last=True))
    assert not tracing.suits(pooling(13, 7, 3, 256, last=True))
    assert not tracing.suits(pooling(28, 3, 1, 256))
    # So little is a matter of calls.
    assert not tracing.suits(pooling(13, 7, 3, 1))
    # Some window is nothing but padding.
    assert not tracing.suits(pooling(28, 9, 9, 64))
    # With channels last, all of a sample has to fit.
    assert not tracing.suits(pooling(112, 9, 4, 64, last=True))
    assert not tracing.suits(Pooling((Axis(56, 9, 2, 1, 4, 4, 28),) * 2, 64))


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: str(layer["size"]))
def test_answers_are_those_of_the_reference(
    layer: dict[str, Any], dtype: str, numbers: str, last: bool
) -> None:
    dims = len(layer["size"])
    config = {key: value for key, value in layer.items() if key != "size"}
    config |= {"stride": [1] * dims, "return_indices": True}
    if last:
        config["layout"] = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[dims]
    x = drawn((2, 3, *layer["size"]), dtype, numbers)
    if last:
        x = np.moveaxis(x, 1, -1)
    want = pools.max_forward(config, {"x": x})
    dy = gradient(want["y"].shape, dtype, numbers)
    want |= pools.max_backward(config, {"x": x, "dy": dy})
    check_answers("max_pool", config, x, dy, want)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
def test_tiles_know_where_they_lie(last: bool) -> None:
    p = pooling(20, 7, 3, last=last)
    axes = tracing.suits(p)
    assert axes is not None
    x = drawn((2, 3, 20, 20), "float32", "special")
    if last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    best, where = (a.copy() for a in tracing.traced(p, axes, x, ((0, 20), (0, 20))))
    for tile in tiles(p.positions, (7, 20)):
        own: tuple[Any, ...] = (..., *(slice(*span) for span in tile))
        for got, want in zip(tracing.traced(p, axes, x, tile), (best, where), strict=True):
            np.testing.assert_array_equal(got, want[own])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "p",
    [pooling(13, 13, 6, 256), pooling(13, 9, 4, 256, last=True), pooling(448, 21, 10, 1)],
    ids=str,
)
def test_blocks_fit_the_scratch(p: Pooling, dtype: str) -> None:
    axes = tracing.suits(p)
    assert axes is not None
    kind = np.dtype(dtype)
    cut, planes = argmax_blocks(p, 8, kind.itemsize)
    inner = p.channels if p.channels_last else 1
    n, c = planes[0]
    lead = (n.stop - n.start) * (1 if p.channels_last else c.stop - c.start)
    before = beside_scratch()
    for tile in cut[:2]:
        assert tracing.room(axes, tile, inner, kind.itemsize) * lead <= SCRATCH_BYTES
        shape = (n.stop - n.start, c.stop - c.start, *p.inputs)
        tracing.traced(p, axes, np.zeros(shape, kind), tile)
    assert beside_scratch() == before


def first(x: np.ndarray, axes: tuple[Axis, ...], output: tuple[int, ...]) -> int:
    """The position that is met first among those that hold the maximum of a window; -1 for none."""
    winner, highest = -1, -np.inf
    for tap in product(*(range(axis.kernel) for axis in axes)):
        at = tuple(axis.input_of(t, o) for axis, t, o in zip(axes, tap, output, strict=True))
        if all(0 <= i < axis.size for i, axis in zip(at, axes, strict=True)):
            value = x[at]
            if winner < 0 or value > highest or (np.isnan(value) and not np.isnan(highest)):
                winner, highest = int(np.ravel_multi_index(at, x.shape)), value
    return winner


@pytest.mark.parametrize("axes", AXES + MORE_AXES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("special", [None, np.nan, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_of_equal_maxima_wins(
    axes: tuple[Axis, ...], last: bool, special: float | None, dtype: str
) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-1, 2, (2, 3, *(axis.size for axis in axes))).astype(dtype)
    x[x == 0] *= rng.choice([-1.0, 1.0], (x == 0).sum())
    if special is not None:
        x[rng.random(x.shape) < 0.3] = special
    given = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if last else x
    tile = tuple((axis.out // 3, axis.out) for axis in axes)
    best, where = tracing.traced(Pooling(axes, 3, last), axes, given, tile)
    for n, c, *place in np.ndindex(*best.shape):
        output = tuple(o + lo for o, (lo, _) in zip(place, tile, strict=True))
        expected = first(x[n, c], axes, output)
        at = (n, c, *place)
        assert where[at] == expected
        # By value: which of two zeros NumPy's reduction returns depends on the processor's vectors.
        np.testing.assert_array_equal(
            best[at], x[n, c].reshape(-1)[expected] if expected >= 0 else -np.inf
        )
