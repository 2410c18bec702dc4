"""Power-average pooling: the p-norm of each window.

    y = (Σ |x|^p)^(1/p)        dx = dy · sign(x) · (|x| / y)^(p−1), and 0 where y is 0

As ONNX's LpPool. p = 1 is the sum of magnitudes; the larger p, the closer to the maximum. Powers are
summed as they are: where |x|^p leaves the dtype's range, so does the result, as in PyTorch. So does the
gradient where dy · y^(1−p) does, which is spread over a window before it meets |x|^(p−1): the quotient
would take a power for each tap of windows that overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidValue, fail
from engine.geometry import Axis, Tile, Windows, as_slices, block_tile, ranges, tiles
from engine.kernels.nan import has_nan
from engine.kernels.pools.fitting import winner_blocks
from engine.kernels.pools.plane_sums import tile_sum
from engine.kernels.pools.pooling import (
    BLOCK,
    Blocks,
    Pooling,
    for_each_block,
    stored,
)
from engine.kernels.pools.spreading import tile_sum_adjoint
from engine.kernels.pools.windows import covered
from engine.layouts import channels_first
from engine.operation import Tails
from engine.options import Number, option
from engine.plans import Plan, compute_dtype
from engine.pool import Pool, WindowConfig
from engine.threads import check_stop

Array = NDArray[Any]


@dataclass(frozen=True)
class LpPoolConfig(WindowConfig):
    """The fields of lp_pool."""

    p: float = option(
        Number(positive=True),
        "The norm's exponent, from 2^-126 to 2^126, or from 2^-1022 to 2^1022 in float64: it and its"
        " inverse are normal numbers of the dtype that arithmetic runs in.",
        2.0,
    )


class LpPool(Pool):
    """See the module."""

    name = "lp_pool"
    summary = "p-norm over sliding windows."
    config = LpPoolConfig
    examples = ({"config": {"kernel": 2, "p": 2}, "shapes": {"x": [1, 1, 4, 4]}},)

    def plan(self, config: LpPoolConfig, tails: Tails, dtype: str) -> Plan:
        compute = compute_dtype(dtype)
        least = float(np.finfo(compute).tiny)
        if not least <= config.p <= 1 / least:
            expected = f"from {least} to {1 / least}, in {compute}"
            msg = "it or its inverse is no normal number of the dtype"
            raise fail(InvalidValue, ("config", "p"), msg, expected, config.p)
        return super().plan(config, tails, dtype)

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        pooling, last = plan.geometry.pooling, plan.geometry.channels_last
        x, y = channels_first(given["x"], last), channels_first(out["y"], last)

        cut, blocked = _blocks(pooling, x)

        def planes(n: slice, c: slice) -> None:
            for tile in cut:
                check_stop()
                powers = tile_sum(pooling, x[n, c], tile, lambda v: _power(v, plan.config.p))
                y[(n, c, *as_slices(tile))] = _root(powers, plan.config.p)

        for_each_block(pooling, x.shape[0], blocked, planes)

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        pooling, last = plan.geometry.pooling, plan.geometry.channels_last
        x, dy, dx = (channels_first(a, last) for a in (given["x"], given["dy"], dx))
        p = plan.config.p
        cut, blocked = _blocks(pooling, x)

        def planes(n: slice, c: slice) -> None:
            for tile in cut:
                check_stop()
                upstream = dy[(n, c, *as_slices(tile))]
                g = _window_gradients(pooling, x[n, c], upstream, tile, p)
                tile_sum_adjoint(pooling, g, tile, dx[n, c])
            _steepen(pooling, stored(pooling, x[n, c]), p, stored(pooling, dx[n, c]))

        for_each_block(pooling, x.shape[0], blocked, planes)


def _blocks(p: Pooling, x: Array) -> Blocks:
    # Padding may be more than the inputs, and is laid out with them where windows overlap.
    if p.overlapping_axes:
        return winner_blocks(p, x.shape[0], x.itemsize)
    return list(p.tiles(copied=True)), list(p.plane_blocks(x.shape[0], copied=True))


def _contiguous_power(a: Array, exponent: float) -> Array:
    # Contiguous, so that every element takes NumPy's vector loop and rounds alike.
    numbers, raised = np.ascontiguousarray(a).reshape(-1), np.asarray(exponent, a.dtype)
    powers = np.empty_like(numbers)
    # Powers take long, and one window may be millions of them.
    for lo, hi in ranges(numbers.size, BLOCK):
        check_stop()
        np.power(numbers[lo:hi], raised, out=powers[lo:hi])
    return powers.reshape(a.shape)


def _power(x: Array, p: float) -> Array:
    if p == 2:
        return x * x
    return np.abs(x) if p == 1 else _contiguous_power(np.abs(x), p)


def _root(powers: Array, p: float) -> Array:
    if p == 2:
        return np.sqrt(powers)
    return powers if p == 1 else _contiguous_power(powers, 1 / p)


def _window_gradients(pooling: Pooling, x: Array, dy: Array, tile: Tile, p: float) -> Array:
    """What each window of a tile hands to its inputs: dy · y^(1−p), and 0 where y is 0."""
    y = _root(tile_sum(pooling, x, tile, lambda v: _power(v, p)), p)
    return np.where(y == 0, 0, _over_power(dy, y, p - 1))


def _over_power(dy: Array, y: Array, exponent: float) -> Array:
    """dy / y^exponent."""
    if exponent == 1:
        return dy / y
    return dy if exponent == 0 else dy * _contiguous_power(y, -exponent)


def _steepen(pooling: Pooling, x: Array, p: float, dx: Array) -> None:
    """Multiply dx by the slopes at x, block by block; both in their order in memory."""
    gaps = not all(map(_covers, pooling.axes))
    whole = tuple((0, size) for size in x.shape)
    # One small block is quicker said than cut.
    cut = (whole,) if x.size <= BLOCK else tiles(x.shape, block_tile(x.shape, BLOCK))
    for tile in cut:
        check_stop()
        box = as_slices(tile)
        part = dx[box]
        part *= _slope(x[box], p)
        if gaps and has_nan(part):
            _settle_gaps(pooling, tile, part)


def _covers(axis: Windows) -> bool:
    """Whether each input is seen to be a member of a window; never said of windows with gaps."""
    runs = isinstance(axis, Axis) and axis.dilation == 1 and axis.stride <= axis.kernel
    return runs and axis.inputs_of(0, axis.out) == (0, axis.size)


def _settle_gaps(pooling: Pooling, tile: Tile, dx: Array) -> None:
    """Write 0 for NaN where no window is: of an infinite slope and no gradient there is none."""
    first = 1 if pooling.channels_last else 2
    # Few at a time: whether an input has a window is worked out in integers of 8 bytes.
    for box in tiles(dx.shape, block_tile(dx.shape, BLOCK // 16)):
        part = dx[as_slices(box)]
        outside = np.zeros((1,) * dx.ndim, bool)
        for place, axis in enumerate(pooling.fixed_axes, first):
            (start, _), (lo, hi) = tile[place], box[place]
            alone = ~covered(axis, start + lo, start + hi)
            outside = outside | alone.reshape(-1, *(1,) * (dx.ndim - 1 - place))
        part[outside & np.isnan(part)] = 0


def _slope(x: Array, p: float) -> Array:
    """sign(x) · |x|^(p−1), and 0 at 0 for every p."""
    if p == 2:
        return x
    return np.sign(x) * _contiguous_power(np.where(x == 0, 1, np.abs(x)), p - 1)


OPERATION = LpPool()
