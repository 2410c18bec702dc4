"""Handing gradients to maxima stage by stage, against their positions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.arena import SCRATCH_BYTES, Arena, beside_scratch
from engine.geometry import Axis, strided_out, tiles
from engine.kernels.pools import handing
from engine.kernels.pools.fitting import winner_blocks
from engine.kernels.pools.maxima import (
    Router,
    tile_argmax,
    write_contested,
    write_maxima,
    write_routed,
    write_scattered,
)
from engine.kernels.pools.placing import scatter_indices
from engine.kernels.pools.pooling import Pooling
from engine.kernels.pools.spreading import tile_sum_adjoint


def pooling(*axes: tuple[int, int, int, int, int]) -> Pooling:
    """From (size, kernel, stride, dilation, padding) of each axis; three channels."""
    made = []
    for size, kernel, stride, dilation, pad in axes:
        out = strided_out(size, dilation * (kernel - 1) + 1, stride, pad, pad)
        made.append(Axis(size, kernel, stride, dilation, pad, pad, out))
    return Pooling(tuple(made), 3)


POOLS = [
    pooling((8, 2, 2, 1, 0), (6, 2, 2, 1, 0)),
    pooling((9, 3, 2, 1, 1), (7, 3, 2, 1, 1)),
    pooling((9, 3, 1, 2, 0), (5, 2, 3, 1, 0)),
    pooling((5, 2, 2, 1, 1), (4, 2, 1, 1, 0), (6, 3, 3, 1, 0)),
]


@pytest.mark.parametrize("p", POOLS)
@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
def test_the_first_maximum_gets_the_gradient(p: Pooling, numbers: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, *p.inputs)).astype(np.float32)
    if numbers != "distinct":
        x = np.round(x).clip(-1, 1)
    if numbers == "special":
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.2] = -np.inf
    dy = rng.integers(-9, 9, (2, 3, *p.positions)).astype(np.float32)
    dy[0, 0, 0] = np.inf
    tile = tuple((0, n) for n in p.positions)
    got, want = np.full_like(x, 7), np.zeros_like(x)
    Router(p).route(x, dy, tile, got)
    scatter_indices(tile_argmax(p, x, tile)[1], dy, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("p", POOLS)
@pytest.mark.parametrize("numbers", ["distinct", "equal"])
def test_who_gets_the_gradient_of_all_planes(p: Pooling, numbers: str) -> None:
    """The first maxima do, told or found; of equal ones that share it each does."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, *p.inputs)).astype(np.float32)
    if numbers == "equal":
        x = np.round(x).clip(-1, 1)
    dy = rng.integers(1, 9, (2, 3, *p.positions)).astype(np.float32)
    y, indices = np.empty_like(dy), np.empty(dy.shape, np.int64)
    write_maxima(p, x, y, indices, positions=True)
    found, told, first, each = (np.full_like(x, 7) for _ in range(4))
    write_routed(p, x, dy, found)
    write_scattered(p, indices, dy, told)
    write_contested(p, x, dy, first, zeros=False, shared=False)
    write_contested(p, x, dy, each, zeros=False, shared=True)
    np.testing.assert_array_equal(told, found)
    np.testing.assert_array_equal(first, found)
    if numbers == "distinct":
        np.testing.assert_array_equal(each, found)
    else:
        assert each.sum() > found.sum()
        assert (each >= found).all()


@pytest.mark.parametrize("p", POOLS[1:])
def test_tiles_of_several_shapes_in_turn_leave_each_other_nothing(p: Pooling) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4, 3, *p.inputs)).astype(np.float32)
    x[1, 1, 0] = -np.inf
    dy = rng.integers(-9, 9, (4, 3, *p.positions)).astype(np.float32)
    whole = tuple((0, n) for n in p.positions)
    got, want, router = np.full_like(x, 7), np.zeros_like(x), Router(p)
    for n in (slice(0, 1), slice(1, 3), slice(3, 4)):
        for tile in tiles(p.positions, (2,) * len(p.axes)):
            router.route(x[n], dy[n], tile, got[n])
    scatter_indices(tile_argmax(p, x, whole)[1], dy, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("p", POOLS)
def test_tiles_that_are_apart_come_in_any_order(p: Pooling) -> None:
    rng = np.random.default_rng(4)
    x, dy = (
        np.moveaxis(rng.standard_normal((2, *sizes, 16)).astype(np.float32), -1, 1)
        for sizes in (p.inputs, p.positions)
    )
    router = Router(Pooling(p.axes, 16, channels_last=True))
    cut = list(tiles(p.positions, (2,) * len(p.axes)))
    forth, back = np.full_like(x, 7), np.full_like(x, 8)
    for tile, opposite in zip(cut, reversed(cut), strict=True):
        router.route(x, dy, tile, forth)
        router.route(x, dy, opposite, back)
    assert router.apart
    assert len(cut) > 1
    assert forth.tobytes() == back.tobytes()
    # Numbers side by side are written in pairs, of which one may be another tile's.
    assert not Router(p).apart


def test_windows_that_divide_the_input_spread_by_broadcasting() -> None:
    p = POOLS[0]
    g = np.arange(2 * 3 * 12, dtype=np.float32).reshape(2, 3, 4, 3)
    dx = np.full((2, 3, 8, 6), np.nan, np.float32)
    tile_sum_adjoint(p, g, ((0, 4), (0, 3)), dx)
    np.testing.assert_array_equal(dx, g.repeat(2, axis=2).repeat(2, axis=3))


LARGE = [
    pooling((112, 3, 2, 1, 1), (112, 3, 2, 1, 1)),
    pooling((900, 2, 1, 1, 0), (900, 3, 2, 1, 1)),
    pooling((40, 2, 2, 1, 0), (40, 3, 1, 1, 1), (40, 2, 2, 1, 0)),
]


@pytest.mark.parametrize("p", LARGE)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_kept_views_lie_in_the_scratch(p: Pooling, last: bool, dtype: type[np.floating]) -> None:
    p, kind = Pooling(p.axes, 16, last), np.dtype(dtype)
    scratch = Arena().take((SCRATCH_BYTES,), np.dtype(np.uint8))
    axes = p.tapped_axes
    assert axes
    cut, blocks = winner_blocks(p, 64, kind.itemsize, handing.room)
    planes = max((n.stop - n.start) * (1 if last else c.stop - c.start) for n, c in blocks)
    for tile in cut:
        part = handing.part_of(axes, tile, 16 if last else 1)
        views = handing.handing(part.shape, (planes,), kind)
        steps = (*views.compare, *views.hand)
        for array in (views.laid, views.numbers, *(result for _, _, result in steps)):
            assert np.may_share_memory(array, scratch)
        assert handing.handing(part.shape, (planes,), kind) is views


def test_a_plane_may_be_larger_than_the_scratch() -> None:
    p = Pooling((Axis(9, 3, 2, 1, 1, 1, 5),), 1 << 18, channels_last=True)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, p.channels, 9)).astype(np.float32)
    dy = rng.integers(-9, 9, (1, p.channels, 5)).astype(np.float32)
    router = Router(p)
    cut, _ = router.blocks(1, 4)
    before = beside_scratch()
    got, want = np.full_like(x, 7), np.zeros_like(x)
    for tile in cut:
        router.route(x, dy, tile, got)
    assert beside_scratch() > before
    scatter_indices(tile_argmax(p, x, ((0, 5),))[1], dy, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("p", POOLS)
@pytest.mark.parametrize("last", [False, True])
def test_the_sign_of_a_zero_is_that_of_a_sample_alone(p: Pooling, last: bool) -> None:
    """A gradient of -0 to which another window adds nothing, at the end of a block or before it."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, 3, *p.inputs)).astype(np.float32)
    dy = np.full((3, 3, *p.positions), -0.0, np.float32)
    if last:
        x, dy = (np.moveaxis(np.moveaxis(a, 1, -1).copy(), -1, 1) for a in (x, dy))
    router = Router(Pooling(p.axes, 3, last))
    tile = tuple((0, n) for n in p.positions)
    together, alone = np.full_like(x, 7), np.full_like(x, 7)
    router.route(x, dy, tile, together)
    for i in range(len(x)):
        router.route(x[i : i + 1], dy[i : i + 1], tile, alone[i : i + 1])
    np.testing.assert_array_equal(np.signbit(together), np.signbit(alone))
    assert together.tobytes() == alone.tobytes()
