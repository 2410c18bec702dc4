"""Gathering windows against indexing, and scattering as its adjoint."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import pytest

from engine.geometry import Axis, strided_out
from engine.kernels.patches import gather, lay, scatter

PADDING: dict[str, Literal["constant", "reflect", "edge", "wrap"]] = {
    "zeros": "constant",
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


def axis(size: int, kernel: int, stride: int, dilation: int, low: int, high: int) -> Axis:
    out = strided_out(size, dilation * (kernel - 1) + 1, stride, low, high)
    return Axis(size, kernel, stride, dilation, low, high, out)


AXES = [
    (axis(7, 3, 1, 1, 1, 1),),
    (axis(6, 2, 2, 2, 0, 3), axis(5, 3, 1, 1, 2, 1)),
    (axis(4, 2, 1, 1, 1, 0), axis(3, 1, 1, 1, 0, 0), axis(5, 2, 3, 2, 2, 2)),
    (axis(2, 3, 1, 1, 1, 1), axis(5, 4, 2, 1, 1, 2)),
    (axis(7, 2, 2, 1, 0, 0), axis(9, 2, 3, 1, 0, 0)),
    (axis(3, 2, 1, 1, 0, 1), axis(40, 7, 4, 6, 3, 2)),
    (axis(30, 5, 6, 4, 0, 1),),
    (axis(160, 3, 70, 2, 1, 1),),
]


@pytest.mark.parametrize("mode", PADDING)
@pytest.mark.parametrize("axes", AXES)
def test_windows_are_those_of_the_padded_input(axes: tuple[Axis, ...], mode: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 1, 3, *(a.size for a in axes)))
    padded = np.pad(x, [(0, 0)] * 3 + [(a.low, a.high) for a in axes], PADDING[mode])
    tile = tuple((a.out // 3, a.out) for a in axes)
    kernel = tuple(a.kernel for a in axes)
    columns = np.full((2, 1, 3, *kernel, *(hi - lo for lo, hi in tile)), np.nan)
    gather(x, axes, tile, mode, columns)
    for tap in np.ndindex(kernel):
        for out in product(*(range(lo, hi) for lo, hi in tile)):
            place = tuple(
                o * a.stride + t * a.dilation for a, o, t in zip(axes, out, tap, strict=True)
            )
            target = tuple(o - lo for o, (lo, _) in zip(out, tile, strict=True))
            assert np.array_equal(columns[(..., *tap, *target)], padded[(..., *place)])


@pytest.mark.parametrize("mode", PADDING)
def test_windows_further_apart_than_inputs_take_no_more_work_than_they_do(mode: str) -> None:
    """Counted residue by residue, a stride like this one would keep a service busy for hours."""
    stride, x = 2**31 - 1, np.arange(6.0).reshape(1, 1, 1, 2, 3)
    axes = (axis(2, 2, stride, 1, 0, 0), axis(3, 2, stride, 1, 1, 0))
    columns = np.full((1, 1, 1, 2, 2, 1, 1), np.nan)
    gather(x, axes, ((0, 1), (0, 1)), mode, columns)
    padded = np.pad(x, [(0, 0)] * 4 + [(1, 0)], PADDING[mode])
    assert np.array_equal(columns[0, 0, 0, :, :, 0, 0], padded[0, 0, 0, :, :2])


@pytest.mark.parametrize("mode", PADDING)
@pytest.mark.parametrize("axes", AXES)
def test_scatter_is_the_adjoint_of_gather(axes: tuple[Axis, ...], mode: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 2, 2, *(a.size for a in axes)))
    tile = tuple((0, a.out) for a in axes)
    shape = (1, 2, 2, *(a.kernel for a in axes), *(a.out for a in axes))
    columns, v = np.empty(shape), rng.standard_normal(shape)
    gather(x, axes, tile, mode, columns)
    back = np.zeros_like(x)
    scatter(v, axes, tile, mode, back)
    np.testing.assert_allclose((columns * v).sum(), (x * back).sum(), rtol=1e-12)


@pytest.mark.parametrize(
    "axes",
    [
        (axis(12, 3, 3, 1, 0, 0),),
        (axis(9, 4, 4, 1, 0, 0), axis(23, 2, 2, 1, 0, 0)),
        (axis(6, 1, 1, 1, 0, 0), axis(8, 4, 4, 1, 0, 0), axis(11, 5, 5, 1, 0, 0)),
    ],
    ids=["row", "more places than taps", "more taps than places"],
)
def test_windows_side_by_side_are_laid_where_they_would_be_scattered(
    axes: tuple[Axis, ...],
) -> None:
    tile = tuple((a.out // 2, a.out) for a in axes)
    shape = (2, 1, 3, *(a.kernel for a in axes), *(hi - lo for lo, hi in tile))
    columns = np.random.default_rng(0).standard_normal(shape)
    got, want = np.zeros((2, 2, 1, 3, *(a.size for a in axes)))
    # Channels last, and in order.
    got = np.moveaxis(np.ascontiguousarray(np.moveaxis(got, 2, -1)), -1, 2)
    lay(columns, axes, tile, got)
    scatter(columns, axes, tile, "zeros", want)
    assert np.array_equal(got, want)
