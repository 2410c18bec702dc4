"""The first tap that holds a window's maximum, against a loop over windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from engine.geometry import Axis
from engine.kernels.residues import recipe
from engine.kernels.winners import ordered, reduced, reduction, room, winners
from engine.threads import SCRATCH_BYTES, Arena

AXES: list[tuple[Axis, ...]] = [
    (Axis(9, 3, 1, 1, 1, 1, 9),),
    (Axis(5, 2, 2, 1, 4, 0, 4),),  # the first two windows hold no input
    (Axis(8, 2, 2, 1, 0, 0, 4), Axis(6, 2, 2, 1, 0, 0, 3)),
    (Axis(7, 3, 2, 1, 1, 1, 4), Axis(9, 3, 2, 1, 1, 1, 5)),
    (Axis(9, 2, 3, 2, 0, 2, 3), Axis(10, 1, 4, 1, 0, 0, 3)),
    (Axis(5, 2, 1, 3, 3, 3, 8), Axis(6, 3, 2, 2, 0, 0, 1)),
    (Axis(4, 2, 2, 1, 0, 0, 2), Axis(5, 3, 1, 1, 1, 1, 5), Axis(6, 2, 2, 1, 1, 1, 4)),
]


def first(x: np.ndarray, axes: tuple[Axis, ...], output: tuple[int, ...]) -> int | None:
    """The number of the tap that is met first among those that hold the maximum; None for none."""
    winner = None
    highest = -np.inf
    for number, tap in enumerate(product(*(range(axis.kernel) for axis in axes))):
        at = tuple(axis.input_of(t, o) for axis, t, o in zip(axes, tap, output, strict=True))
        if all(0 <= i < axis.size for i, axis in zip(at, axes, strict=True)):
            value = x[at]
            if winner is None or value > highest or (np.isnan(value) and not np.isnan(highest)):
                winner, highest = number, value
    return winner


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("special", [None, np.nan, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_of_equal_maxima_wins(
    axes: tuple[Axis, ...], inner: int, special: float | None, dtype: str
) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-1, 2, (2, *(axis.size for axis in axes), inner)).astype(dtype)
    x[x == 0] *= rng.choice([-1.0, 1.0], (x == 0).sum())
    if special is not None:
        x[rng.random(x.shape) < 0.3] = special
    tile = tuple((axis.out // 3, axis.out) for axis in axes)
    best, taps, blanks = winners(x, axes, tile, Arena())
    for n, *place, i in np.ndindex(*best.shape):
        output = tuple(o + lo for o, (lo, _) in zip(place, tile, strict=True))
        expected = first(x[n, ..., i], axes, output)
        at = (n, *place, i)
        assert (blanks is not None and blanks[at]) == (expected is None)
        if expected is not None:
            assert taps[at] == expected
        window = (a.input_of(0, o) for a, o in zip(axes, output, strict=True))
        reads = tuple(
            [j for j in range(start, start + a.extent, a.dilation) if 0 <= j < a.size]
            for start, a in zip(window, axes, strict=True)
        )
        seen = x[n, ..., i][np.ix_(*reads)]
        # By value: which of two zeros NumPy's reduction returns depends on the processor's vectors.
        np.testing.assert_array_equal(best[at], seen.max() if seen.size else -np.inf)


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_windows_are_added_up_over_real_inputs_only(axes: tuple[Axis, ...]) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(-9, 10, (2, *(axis.size for axis in axes), 3)).astype(np.float32)
    tile = tuple((axis.out // 3, axis.out) for axis in axes)
    got = reduced(np.add, 0, x, axes, tile, np.square)
    for place in np.ndindex(*got.shape[1:-1]):
        want = np.zeros((2, 3))
        for tap in product(*(range(axis.kernel) for axis in axes)):
            at = [
                axis.input_of(t, o + lo)
                for axis, t, o, (lo, _) in zip(axes, tap, place, tile, strict=True)
            ]
            if all(0 <= i < axis.size for i, axis in zip(at, axes, strict=True)):
                want += x[(slice(None), *at)] ** 2
        np.testing.assert_array_equal(got[(slice(None), *place)], want)


def test_keys_have_the_order_of_maxima() -> None:
    x = np.array([-np.inf, -2, -1e-45, -0.0, 0.0, 1e-45, 3, np.inf, np.nan], np.float32)
    for sign in (x, x.astype(np.float64)):
        keys = ordered(sign)
        assert keys[3] == keys[4] == 0
        assert (np.diff(np.delete(keys, 3)) > 0).all()
        assert keys[0] > np.iinfo(keys.dtype).min


def test_a_tile_fits_the_room_it_asks_for() -> None:
    """Taking the arrays of a tile, and its positions, uses no more of the arena than planned."""
    axes, tile = AXES[3], ((0, 4), (0, 5))
    x = np.zeros((1, 7, 9, 16), np.float32)
    arena = Arena()
    best, _, _ = winners(x, axes, tile, arena)
    lines = 64 * 8
    assert arena.used + 8 * best.size <= room(axes, tile, 16, 4) + lines
    assert recipe(axes, tile, 16).lengths == (5, 6, 16)


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_views_are_of_the_scratch_and_made_once(axes: tuple[Axis, ...]) -> None:
    found = recipe(axes, tuple((0, axis.out) for axis in axes), 16)
    shape = (found.residues, found.lengths, found.stages, (3,), np.dtype(np.float32))
    views = reduction(np.add, *shape)
    assert reduction(np.add, *shape) is views
    assert reduction(np.maximum, *shape) is not views
    scratch = Arena().take((SCRATCH_BYTES,), np.dtype(np.uint8))
    assert np.may_share_memory(views.laid, scratch)
    for _, operands, target in views.steps:
        assert all(np.may_share_memory(array, scratch) for array in (*operands, target))
    assert np.shares_memory(views.result, views.steps[-1][2])
