"""Which kernel computes a correlation and its adjoints; decided by the plan's integers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.correlation import Correlation
from engine.kernels.depthwise import banded, banding, bounds, pixels, planes, stuffed
from engine.kernels.direct import (
    adjoints,
    bordered,
    channels_last,
    flat,
    gathered,
    interleaved,
    interleaving,
    joined,
    patch_sums,
    pointwise,
    rowwise,
    shifts,
    single,
)
from engine.kernels.patches import within
from engine.kernels.turning import in_rows, tap_by_tap
from engine.kernels.winograd import correlating, filtering, tile_costs, tiling

Array = NDArray[Any]

FARTHEST = 3
"""Stride up to which outputs lie close enough for dot products of whole planes."""

FEW_PLACES = 12_000
"""Outputs of a sample below which small maps are better gathered, many samples at a time."""

Forward = Callable[[Correlation, Array, Array, Array | None, Array], None]
Input = Callable[[Correlation, Array, Array, Array], None]
Weight = Callable[[Correlation, Array, Array, Sequence[int], Array], None]

PLAIN: Mapping[str, Forward] = {
    "direct": gathered.forward,
    "banded": banded.forward,
    "flat": flat.forward,
    "joined": joined.forward,
    "pixels": pixels.forward,
    "single": single.forward,
}
"""Plain sums. Like all kernels of `correlate` they leave NaN of one pattern of bits only."""


@lru_cache(maxsize=4096)
def tiled(c: Correlation) -> bool:
    """True where `correlate` is done as Winograd does."""
    # In float32 Winograd is as exact as promised; who computes in float64 wants the digits.
    chosen = c.wanted == "winograd" or (c.wanted != "direct" and c.itemsize == 4)
    return chosen and tiling.suits(c) and (c.wanted == "winograd" or tile_costs.pay(c))


def joins(c: Correlation) -> bool:
    """True where samples may share products: seldom, and quicker to tell than which kernel."""
    return joined.suits(c) and not tiled(c) and plain_kernel(c) == "joined"


@lru_cache(maxsize=4096)
def plain_kernel(c: Correlation) -> str:
    """The name in `PLAIN` of what makes the plain sum of a layer whose weights are (G, O, C·K)."""
    if single.suits(c):
        return "single"
    if bounds.pay(c) and pixels.suits(c):
        return "pixels"
    if banding.pay(c) and banding.suits(c):
        return "banded"
    if joined.suits(c):
        return "joined"
    return "flat" if flat.suits(c) and flat.pay(c) else "direct"


@lru_cache(maxsize=4096)
def goes_tap_by_tap(c: Correlation) -> bool:
    """True where `correlate` takes weights as (1, O, K·C)."""
    if not (c.channels_last and c.taps_apart):
        return False
    if single.window(c) is not None:
        return True
    return channels_last.suits(c) and channels_last.pay(c) and not tiled(c)


@lru_cache(maxsize=4096)
def adjoint_goes_tap_by_tap(c: Correlation) -> bool:
    """True where `correlate_input` takes weights as a view (1, O, C, *K)."""
    if not (c.channels_last and c.taps_apart):
        return False
    if single.window(c) is not None:
        return True
    kernel = input_kernel(c)
    if kernel is _interleaved:
        return True
    return kernel is _by_residues and any(map(goes_tap_by_tap, phase_correlations(c)))


def forward_algorithm(c: Correlation) -> str:
    """What `correlate` runs: winograd by name wherever it can be, and by itself where it pays."""
    return "winograd" if tiled(c) else "direct"


def adjoint_algorithm(c: Correlation) -> str:
    """What `correlate_input` runs."""
    return "winograd" if any(map(tiled, phase_correlations(c))) else "direct"


def weight_algorithm(c: Correlation) -> str:
    """What `correlate_weight` runs."""
    return "winograd" if by_tiles(c) else "direct"


def phase_correlations(c: Correlation) -> list[Correlation]:
    """The correlations that the gradient of x consists of, where it is gathered."""
    # Many phases have the same.
    found = {phase.correlation: None for phase in adjoints.phases(c)}
    return [correlation for correlation in found if correlation is not None]


def correlate(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None.

    Where it `goes_tap_by_tap`, w is (1, O, K·C). Every NaN is given its bits while the block around it
    is in the cache.
    """
    one = single.window(c)
    column = None if one is None else single.column(c, x)
    if one is not None and column is not None:
        _forward(one)(one, column, w, bias, y)
    else:
        _forward(c)(c, x, w, bias, y)


@lru_cache(maxsize=4096)
def _forward(c: Correlation) -> Forward:
    if tiled(c):
        return _winograd
    return channels_last.forward if goes_tap_by_tap(c) else PLAIN[plain_kernel(c)]


def _winograd(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    correlating.forward(c, x, w, bias, y, PLAIN[plain_kernel(c)])


def correlate_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `correlate` in x, from dy (N, G, O, *P) and w (G, O, C·K).

    Where it `adjoint_goes_tap_by_tap`, w is (1, O, C, *K). Every NaN is given its bits, as in `correlate`.
    """
    one = single.window(c)
    column = None if one is None else single.column(c, dx)
    if one is not None and column is not None:
        weights = tap_by_tap(w[0]) if c.channels_last else w
        input_kernel(one)(one, dy, weights, column)
    else:
        input_kernel(c)(c, dy, w, dx)


@lru_cache(maxsize=4096)
def input_kernel(c: Correlation) -> Input:
    """What writes the gradient of x, called as `correlate_input` is."""
    if bordered.suits(c):
        return _bordered
    if single.suits(c):
        return single.backward_input
    if not adjoints.gathers(c):
        return adjoints.scattering(c)
    if stuffed.suits(c):
        return _stuffed
    return _interleaved if _interleaves(c) else _by_residues


def _interleaves(c: Correlation) -> bool:
    if not (interleaving.pay(c) and interleaving.suits(c)):
        return False
    return not any(map(tiled, phase_correlations(c)))


def _bordered(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    bordered.backward_input(c, dy, w, dx, correlate_input)


def _stuffed(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    stuffed.backward_input(c, dy, w, dx, _by_residues)


def _by_residues(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """`correlate_input` as a correlation for each residue of the inputs."""
    unfolded = w.reshape(c.groups, c.outputs, c.channels, *c.kernel)
    phases = adjoints.phases(c)
    turned = in_rows(unfolded, [phase.taps for phase in phases if _turns(phase.correlation)])
    if any(phase.correlation is None for phase in phases):
        # In order once, which takes less time than every so many numbers for each of those.
        dx[...] = 0
    for phase in phases:
        if phase.correlation is None:
            continue
        target = dx[within(phase.inputs)]
        if _turns(phase.correlation):
            weights = turned.pop(0).reshape(c.groups, c.channels, -1)
        else:
            weights = unfolded[within(phase.taps)].swapaxes(1, 2)
            if _as_they_lie(phase.correlation):
                weights = weights.reshape(weights.shape[:3], copy=False)
            elif goes_tap_by_tap(phase.correlation):
                weights = tap_by_tap(weights[0])
        correlate(phase.correlation, dy, weights, None, target)
    _keep_apart(c, dy, w, dx)


def _interleaved(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    interleaved.backward_input(c, dy, w, dx)
    _keep_apart(c, dy, w, dx)


def _keep_apart(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Compute samples anew in which weights that are not finite have met zeros beside dy."""
    for n in adjoints.spoiled(c, w, dx):
        rows = np.ascontiguousarray(w).reshape(c.groups, c.outputs, -1)
        gathered.backward_input(c, dy[n : n + 1], rows, dx[n : n + 1])


def _turns(c: Correlation | None) -> bool:
    """True where rows of weights are laid out before; Winograd lays filters out anew itself."""
    return c is not None and not (_as_they_lie(c) or tiled(c) or goes_tap_by_tap(c))


def _as_they_lie(c: Correlation) -> bool:
    """True where weights are read in any order: BLAS takes less time for it than turning them would."""
    return c.pointwise and plain_kernel(c) == "direct"


def correlate_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `correlate` in w, for each of R requests.

    `rows` says how many consecutive samples belong to each request.
    """
    one = single.window(c)
    column = None if one is None else single.column(c, x)
    target = None if one is None else single.gradient(c, dw)
    if one is not None and column is not None and target is not None:
        single.backward_weight(one, column, dy, rows, target)
    else:
        _weight(c)(c, x, dy, rows, dw)


@lru_cache(maxsize=4096)
def _weight(c: Correlation) -> Weight:
    return _tiles_weight if by_tiles(c) else plain_weight(c)


def by_tiles(c: Correlation) -> bool:
    """True where the gradient of the weight is done as `correlating` does the forward map."""
    return tiled(c) and len(c.axes) == 2


def _tiles_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    filtering.backward_weight(c, x, dy, rows, dw, _sum_weight)


def _sum_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    plain_weight(c)(c, x, dy, rows, dw)


@lru_cache(maxsize=4096)
def plain_weight(c: Correlation) -> Weight:
    """What makes the gradient of the weight as a plain sum, called as `correlate_weight` is."""
    if single.suits(c):
        return single.backward_weight
    if bounds.pay_for_weight(c) and pixels.suits(c):
        return pixels.backward_weight
    if c.taps_apart and channels_last.suits(c) and channels_last.pay_for_weight(c):
        return channels_last.backward_weight
    if planes.pay(c) and not _strewn(c) and planes.suits(c):
        return planes.backward_weight
    if pointwise.pay(c) and pointwise.suits(c):
        return pointwise.backward_weight
    if rowwise.suits(c):
        return rowwise.backward_weight
    fits = flat.suits(c)
    if fits and flat.pay_before_shifts(c):
        return flat.backward_weight
    if shifts.pay(c) and shifts.suits(c):
        return shifts.backward_weight
    return (flat if fits and flat.pay_for_weight(c) else patch_sums).backward_weight


def _strewn(c: Correlation) -> bool:
    """True where `planes` would have few numbers for a call, or most of them between outputs."""
    far = max(axis.stride for axis in c.axes) > FARTHEST
    return far or (c.groups * c.places < FEW_PLACES and flat.suits(c) and flat.pay_before_shifts(c))
