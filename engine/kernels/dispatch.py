"""Which kernel computes a correlation and its adjoints; decided by the plan's integers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels import (
    adjoints,
    banded,
    banding,
    bordered,
    depthwise,
    direct,
    filtering,
    flat,
    joined,
    patch_sums,
    pixels,
    planes,
    pointwise,
    rowwise,
    scattered,
    shifts,
    single,
    stuffed,
    tile_costs,
    tiling,
    winograd,
)
from engine.kernels.correlation import Correlation
from engine.kernels.patches import within
from engine.kernels.requests import SHARES
from engine.kernels.turning import in_rows

Array = NDArray[Any]

FARTHEST = 3
"""Stride up to which outputs lie close enough for dot products of whole planes."""

FEW_PLACES = 12_000
"""Outputs of a sample below which small maps are better gathered, many samples at a time."""

SUMMED = (flat, pointwise, shifts)
"""Kernels that hold several sums of the gradient of a weight."""

Forward = Callable[[Correlation, Array, Array, Array | None, Array], None]
Input = Callable[[Correlation, Array, Array, Array], None]
Weight = Callable[[Correlation, Array, Array, Sequence[int], Array], None]

PLAIN: Mapping[str, Forward] = {
    "direct": direct.forward,
    "banded": banded.forward,
    "flat": flat.forward,
    "joined": joined.forward,
    "pixels": pixels.forward,
    "single": single.forward,
}
"""Plain sums. Like all kernels of `correlate` they leave NaN of one pattern of bits only."""


@lru_cache(maxsize=4096)
def _tiled(c: Correlation) -> bool:
    """True where `correlate` is done as Winograd does."""
    # In float32 Winograd is as exact as promised; who computes in float64 wants the digits.
    chosen = c.wanted == "winograd" or (c.wanted != "direct" and c.itemsize == 4)
    return chosen and tiling.suits(c) and (c.wanted == "winograd" or tile_costs.pay(c))


def _joined(c: Correlation) -> bool:
    """True where samples may share products: seldom, and quicker to tell than which kernel."""
    return joined.suits(c) and not _tiled(c) and _plain_kernel(c) == "joined"


@lru_cache(maxsize=4096)
def _plain_kernel(c: Correlation) -> str:
    if single.suits(c):
        return "single"
    if depthwise.pay(c) and pixels.suits(c):
        return "pixels"
    if banding.pay(c) and banding.suits(c):
        return "banded"
    if flat.suits(c):
        return "flat"
    return "joined" if joined.suits(c) else "direct"


def forward_algorithm(c: Correlation) -> str:
    """What `correlate` runs: winograd by name wherever it can be, and by itself where it pays."""
    return "winograd" if _tiled(c) else "direct"


def adjoint_algorithm(c: Correlation) -> str:
    """What `correlate_input` runs."""
    return "winograd" if any(map(_tiled, _phase_correlations(c))) else "direct"


def weight_algorithm(c: Correlation) -> str:
    """What `correlate_weight` runs."""
    return "winograd" if _by_tiles(c) else "direct"


def _phase_correlations(c: Correlation) -> list[Correlation]:
    """The correlations that the gradient of x consists of, where it is gathered."""
    # Many phases have the same.
    found = {phase.correlation: None for phase in adjoints.phases(c) or ()}
    return [correlation for correlation in found if correlation is not None]


@lru_cache(maxsize=4096)
def forward_bytes(c: Correlation, ordered: bool) -> int:
    """What `correlate` holds of the weights in another form.

    They are copied before if they do not come `ordered`, and once more where results are made pixel by
    pixel. Where samples are to share products, a few are compared.
    """
    held = _weights(c) * (1 + (not ordered) + _in_pixels(c))
    if _tiled(c):
        return held + tiling.filter_bytes(c)
    return held + (joined.probe_bytes(c) if _joined(c) else 0)


def _in_pixels(c: Correlation) -> bool:
    return c.channels_last or _plain_kernel(c) == "pixels"


@lru_cache(maxsize=4096)
def rearranged_bytes(c: Correlation, ordered: bool) -> int:
    """What `correlate` and its adjoints hold of the weights in another form, and its gradient in shares."""
    if bordered.suits(c):
        return rearranged_bytes(bordered.unbordered(c), ordered) + bordered.strip_bytes(c)
    weights = _weights(c)
    held = weights * (1 + (not ordered) + any(map(_in_pixels, (c, *_phase_correlations(c)))))
    if _plain_weight(c) is pixels.backward_weight:
        return held + weights * SHARES
    several = any(k.suits(c) for k in SUMMED) or patch_sums.share_count(c) > 1
    several = several and not rowwise.suits(c)
    summed = weights * (1 + SHARES) if several else 0
    # The gradient's channels are the outputs, so that it may have larger tiles.
    both = (c, *_phase_correlations(c))
    tiled = [each for each in both if _tiled(each)]
    if not tiled:
        probes = [joined.probe_bytes(each) for each in both if _joined(each)]
        if _input(c) is scattered.backward_input:
            probes.append(scattered.probe_bytes(c))
        return held + summed + max(probes, default=0)
    shares = filtering.share_bytes(c) if _by_tiles(c) else 0
    return held + summed + max(map(tiling.filter_bytes, tiled)) + shares


def _weights(c: Correlation) -> int:
    return c.groups * c.outputs * c.channels * c.taps * c.itemsize


def correlate(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None.

    Every NaN is given its bits while the block around it is in the cache.
    """
    one = single.window(c)
    column = None if one is None else single.column(c, x)
    if one is not None and column is not None:
        _forward(one)(one, column, w, bias, y)
    else:
        _forward(c)(c, x, w, bias, y)


@lru_cache(maxsize=4096)
def _forward(c: Correlation) -> Forward:
    return _winograd if _tiled(c) else PLAIN[_plain_kernel(c)]


def _winograd(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    winograd.forward(c, x, w, bias, y, PLAIN[_plain_kernel(c)])


def correlate_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `correlate` in x, from dy (N, G, O, *P).

    Every NaN is given its bits, as in `correlate`.
    """
    one = single.window(c)
    column = None if one is None else single.column(c, dx)
    if one is not None and column is not None:
        _input(one)(one, dy, w, column)
    else:
        _input(c)(c, dy, w, dx)


@lru_cache(maxsize=4096)
def _input(c: Correlation) -> Input:
    if bordered.suits(c):
        return _bordered
    if single.suits(c):
        return single.backward_input
    if not adjoints.gathers(c):
        return adjoints.scattering(c)
    return _stuffed if stuffed.suits(c) else _by_residues


def _bordered(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    bordered.backward_input(c, dy, w, dx, correlate_input)


def _stuffed(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    stuffed.backward_input(c, dy, w, dx, _by_residues)


def _by_residues(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """`correlate_input` as a correlation for each residue of the inputs."""
    unfolded = w.reshape(c.groups, c.outputs, c.channels, *c.kernel)
    phases = adjoints.phases(c) or ()
    turned = in_rows(unfolded, [phase.taps for phase in phases if _turns(phase.correlation)])
    for phase in phases:
        target = dx[within(phase.inputs)]
        if phase.correlation is None:
            target[...] = 0
            continue
        if _turns(phase.correlation):
            weights = turned.pop(0).reshape(c.groups, c.channels, -1)
        else:
            weights = unfolded[within(phase.taps)].swapaxes(1, 2)
            if _as_they_lie(phase.correlation):
                weights = weights.reshape(weights.shape[:3], copy=False)
        correlate(phase.correlation, dy, weights, None, target)
    for n in _spread(c, w, dx):
        direct.backward_input(c, dy[n : n + 1], w, dx[n : n + 1])


def _turns(c: Correlation | None) -> bool:
    """True where rows of weights are laid out before; Winograd lays filters out anew itself."""
    return c is not None and not (_as_they_lie(c) or _tiled(c))


def _as_they_lie(c: Correlation) -> bool:
    """True where weights are read in any order: BLAS takes less time for it than turning them would."""
    return c.pointwise and _plain_kernel(c) == "direct"


def _spread(c: Correlation, w: Array, dx: Array) -> Sequence[int]:
    """The samples where a weight that is not finite may have met zeros beside dy, which are no outputs.

    It then spoils all inputs of its residue, so that the first of each tell whether to look at weights.
    """
    first = dx[within(slice(axis.stride) for axis in c.axes)]
    sums = np.add.reduce(first, axis=tuple(range(1, dx.ndim)))
    if np.isfinite(sums).all():
        return ()
    edges = np.minimum.reduce(w, axis=None), np.maximum.reduce(w, axis=None)
    return () if np.isfinite(edges).all() else np.flatnonzero(~np.isfinite(sums)).tolist()


def correlate_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `correlate` in w, for each of R requests.

    `rows` says how many consecutive samples belong to each request.
    """
    _weight(c)(c, x, dy, rows, dw)


@lru_cache(maxsize=4096)
def _weight(c: Correlation) -> Weight:
    return _tiles_weight if _by_tiles(c) else _plain_weight(c)


def _by_tiles(c: Correlation) -> bool:
    """True where the gradient of the weight is done as `winograd` does the forward map."""
    return _tiled(c) and len(c.axes) == 2


def _tiles_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    filtering.backward_weight(c, x, dy, rows, dw, _sum_weight)


def _sum_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    _plain_weight(c)(c, x, dy, rows, dw)


@lru_cache(maxsize=4096)
def _plain_weight(c: Correlation) -> Weight:
    if depthwise.pay_for_weight(c) and pixels.suits(c):
        return pixels.backward_weight
    if planes.pay(c) and not _strewn(c) and planes.suits(c):
        return planes.backward_weight
    if pointwise.pay(c) and pointwise.suits(c):
        return pointwise.backward_weight
    if rowwise.suits(c):
        return rowwise.backward_weight
    if flat.suits(c):
        return flat.backward_weight
    return (shifts if shifts.pay(c) and shifts.suits(c) else patch_sums).backward_weight


def _strewn(c: Correlation) -> bool:
    """True where `planes` would have few numbers for a call, or most of them between outputs."""
    far = max(axis.stride for axis in c.axes) > FARTHEST
    return far or (c.groups * c.places < FEW_PLACES and flat.suits(c))
