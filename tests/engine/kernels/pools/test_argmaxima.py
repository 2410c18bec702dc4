"""Maxima of large windows that divide planes evenly, each found in a row of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.geometry import Adaptive, Axis, tiles
from engine.kernels.pools import argmaxima
from engine.kernels.pools.pooling import Pooling
from tests.engine.kernels.maxima import check_answers, drawn, layer
from tests.engine.reference import pools

pytestmark = pytest.mark.usefixtures("sharing")

LAYERS: list[tuple[tuple[int, ...], list[int]]] = [
    ((2, 3, 48), [2]),
    ((2, 3, 12, 13), [1, 1]),
    ((2, 3, 24, 54), [2, 3]),
    ((2, 2, 6, 6, 8), [1, 2, 1]),
]


def pooling(sizes: tuple[int, ...], outs: list[int], *, last: bool = False) -> Pooling:
    axes = (
        Axis(size, size // out, size // out, 1, 0, 0, out)
        for size, out in zip(sizes, outs, strict=True)
    )
    return Pooling(tuple(axes), 3, last)


def test_what_suits() -> None:
    assert argmaxima.suits(pooling((56, 56), [1, 1]))
    assert argmaxima.suits(pooling((48,), [2], last=True))
    # Few taps are looked at one by one.
    assert not argmaxima.suits(pooling((14, 14), [2, 2]))
    assert not argmaxima.suits(Pooling((Adaptive(56, 5), Axis(56, 56, 56, 1, 0, 0, 1)), 3))
    assert not argmaxima.suits(Pooling((Axis(56, 28, 28, 1, 1, 0, 2),), 3))


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "outs"), LAYERS, ids=str)
def test_answers_are_those_of_the_reference(
    shape: tuple[int, ...], outs: list[int], dtype: str, numbers: str, last: bool
) -> None:
    given = {"output_size": outs, "return_indices": True}
    config, x, dy = layer(given, shape, outs, dtype, numbers, last=last)
    want = pools.adaptive_max_forward(config, {"x": x})
    want |= pools.adaptive_max_backward(config, {"x": x, "dy": dy})
    check_answers("adaptive_max_pool", config, x, dy, want)


@pytest.mark.parametrize("taps", [24, 26, 31, 40])
@pytest.mark.parametrize("window", [(1, 1), (1, 2), (2, 1)], ids=str)
def test_there_may_be_very_many_windows(taps: int, window: tuple[int, int]) -> None:
    """As of maxima over time: one window a plane, and more planes than NumPy looks at in one go."""
    sizes = (taps * window[0], taps * window[1] if window[1] > 1 else 1)
    x = np.random.default_rng(0).standard_normal((93, 97, *sizes)).astype(np.float32)
    best, where = argmaxima.argmaxima(pooling(sizes, [1, 1]), x, ((0, 1), (0, 1)))
    rows = x.reshape(93, 97, -1)
    np.testing.assert_array_equal(where[..., 0, 0], rows.argmax(axis=-1))
    np.testing.assert_array_equal(best[..., 0, 0], rows.max(axis=-1))


def test_tiles_know_where_they_lie() -> None:
    p = pooling((24, 54), [2, 3])
    x = drawn((2, 3, 24, 54), "float32", "special")
    best, where = argmaxima.argmaxima(p, x, ((0, 2), (0, 3)))
    for tile in tiles(p.positions, (1, 2)):
        own: tuple[Any, ...] = (..., *(slice(*span) for span in tile))
        for got, want in zip(argmaxima.argmaxima(p, x, tile), (best, where), strict=True):
            np.testing.assert_array_equal(got, want[own])


@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
def test_long_rows_are_looked_through_part_by_part(
    numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, x = pooling((24, 54), [2, 3]), drawn((4, 3, 24, 54), "float32", numbers)
    want = argmaxima.argmaxima(p, x, ((0, 2), (0, 3)))
    for part in (1, 7, 100):
        monkeypatch.setattr(argmaxima, "PASS", part)
        for got, whole in zip(argmaxima.argmaxima(p, x, ((0, 2), (0, 3))), want, strict=True):
            np.testing.assert_array_equal(got, whole)
