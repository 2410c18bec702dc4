"""What is laid out stands where taps look for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.geometry import Axis
from engine.kernels.pools.residues import lay, opened, recipe

AXES: list[tuple[Axis, ...]] = [
    (Axis(9, 3, 1, 1, 1, 1, 9),),
    (Axis(8, 2, 2, 1, 0, 0, 4), Axis(6, 2, 2, 1, 0, 0, 3)),  # both axes split evenly
    (Axis(8, 3, 2, 1, 1, 1, 4), Axis(9, 3, 2, 1, 1, 1, 5)),  # the first of them
    (Axis(9, 2, 3, 2, 0, 2, 3), Axis(10, 1, 4, 1, 0, 0, 3)),
]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("inner", [1, 3])
def test_taps_find_their_inputs(axes: tuple[Axis, ...], inner: int) -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2, *(axis.size for axis in axes), inner)).astype(np.float32)
    tile = tuple((0, axis.out) for axis in axes)
    found = recipe(axes, tile, inner)
    laid = np.full((*found.residues, 2, *found.lengths), np.nan, np.float32)
    lay(x, found, -1, laid)
    taps = list(np.ndindex(*(axis.kernel for axis in axes)))
    for tap, (residues, shift) in zip(taps, found.taps, strict=True):
        for output in np.ndindex(*(axis.out for axis in axes)):
            at: tuple[Any, ...] = tuple(map(Axis.input_of, axes, tap, output))
            inside = all(0 <= i < axis.size for i, axis in zip(at, axes, strict=True))
            place = np.ravel_multi_index((*output, 0), found.lengths) + shift
            got = laid[residues].reshape(2, -1)[:, place : place + inner]
            np.testing.assert_array_equal(got, x[:, *at] if inside else np.full((2, inner), -1))


def test_an_axis_opens_into_runs_of_the_stride() -> None:
    a = np.arange(2 * 7 * 3).reshape(2, 7, 3)
    runs = opened(a, ((1, 2, 3),))
    assert runs.shape == (3, 2, 2, 3)
    np.testing.assert_array_equal(runs[2, 1], a[1, 3:7:3])
    assert np.shares_memory(runs, a)
