"""Windows reduced over laid out inputs, against a loop over windows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.arena import SCRATCH_BYTES, Arena
from engine.geometry import Axis
from engine.kernels.pools.residues import recipe
from engine.kernels.pools.winners import ordered, reduced, reduction
from tests.engine.kernels.maxima import AXES


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_windows_are_added_up_over_real_inputs_only(axes: tuple[Axis, ...]) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(-9, 10, (2, *(axis.size for axis in axes), 3)).astype(np.float32)
    tile = tuple((axis.out // 3, axis.out) for axis in axes)
    got = reduced(np.add, 0, x, axes, tile, np.square)
    for place in np.ndindex(*got.shape[1:-1]):
        want = np.zeros((2, 3))
        for tap in product(*(range(axis.kernel) for axis in axes)):
            at: tuple[Any, ...] = tuple(
                axis.input_of(t, o + lo)
                for axis, t, o, (lo, _) in zip(axes, tap, place, tile, strict=True)
            )
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
