"""Averages with a divisor of one's own for each output, and their adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from engine.geometry import Adaptive, Axis, Tile, Windows
from engine.kernels.pools import averaging
from engine.kernels.pools.averaging import FEW, members, write_averages, write_averages_adjoint
from engine.kernels.pools.pooling import BLOCK, Pooling

POOLS: list[tuple[Windows, ...]] = [
    (Axis(6, 6, 6, 1, 0, 0, 1), Axis(5, 5, 5, 1, 0, 0, 1)),
    (Axis(8, 2, 2, 1, 0, 0, 4), Axis(6, 3, 3, 1, 0, 0, 2)),
    (Axis(9, 3, 1, 1, 1, 1, 9), Axis(7, 3, 1, 1, 1, 1, 7)),
    (Axis(9, 2, 3, 2, 0, 2, 3), Axis(10, 1, 4, 1, 0, 0, 3)),
    (Axis(9, 2, 2, 1, 1, 0, 5), Axis(11, 3, 3, 1, 0, 0, 3)),
    (Axis(8, 2, 2, 1, 0, 0, 4), Axis(9, 2, 3, 1, 0, 0, 3)),
    (Axis(70, 26, 26, 1, 3, 5, 3), Axis(9, 2, 2, 1, 0, 0, 4)),
    (Adaptive(7, 3), Adaptive(5, 4)),
]
IDS = ["all", "side by side", "one apart", "gaps", "some left", "further apart", "long", "adaptive"]


def divisor(tile: Tile) -> np.ndarray:
    """A number of its own for each output."""
    (top, bottom), (left, right) = tile
    return 1.0 + 100 * np.arange(top, bottom)[:, None] + np.arange(left, right)


def averages(p: Pooling, x: np.ndarray) -> np.ndarray:
    """Those of planes with channels first or last, as x has them in memory."""
    y = np.empty_like(x, shape=(*x.shape[:2], *p.positions))
    write_averages(p, divisor, x, y)
    return y


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("axes", POOLS, ids=IDS)
@pytest.mark.parametrize("block", [BLOCK, 8])
def test_sums_are_divided_output_by_output_and_so_is_the_adjoint(
    axes: tuple[Windows, ...], last: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.kernels.pools.pooling.BLOCK", block)
    monkeypatch.setattr(averaging, "BLOCK", block)
    p, rng = Pooling(axes, 3, last), np.random.default_rng(0)
    x = rng.standard_normal((2, *p.inputs, 3) if last else (2, 3, *p.inputs))
    x = np.moveaxis(x, -1, 1) if last else x
    ones = averages(p, np.ones_like(x))
    whole = divisor(tuple((0, out) for out in p.positions))
    counts = np.round(ones * whole)
    np.testing.assert_allclose(ones, counts / whole)
    assert counts.max() <= x[0, 0].size
    y = averages(p, x)
    dy = np.empty_like(y)
    dy[...] = rng.standard_normal(y.shape)
    dx = np.full_like(x, np.nan)
    write_averages_adjoint(p, divisor, dy, dx)
    np.testing.assert_allclose(np.vdot(dx, x), np.vdot(dy, y), 1e-12, 1e-12)


def test_members_multiply_along_axes_and_many_equal_ones_are_told_once() -> None:
    assert members([np.array([2, 3]), np.array([1, 4, 5])]).tolist() == [[2, 8, 10], [3, 12, 15]]
    assert members([np.full(FEW + 1, 3), np.array([1, 2])]).tolist() == [[3, 6]]
    assert members([np.full(FEW, 3), np.array([1, 2])]).shape == (FEW, 2)
