"""What a correlation and its adjoints hold of the weights in another form, beside the scratch."""

from __future__ import annotations

from functools import lru_cache

from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise import pixels
from engine.kernels.direct import (
    bordered,
    channels_last,
    flat,
    joined,
    patch_sums,
    pointwise,
    rowwise,
    scattered,
    shifts,
)
from engine.kernels.requests import SHARES
from engine.kernels.winograd import filtering, tiling

SUMMED = (pointwise, shifts)
"""Kernels that, as `flat` does, hold several sums of the gradient of a weight."""


@lru_cache(maxsize=4096)
def forward_bytes(c: Correlation, ordered: bool) -> int:
    """What `correlate` holds of the weights in another form.

    They are copied before if they do not come `ordered`, and once more where results are made pixel by
    pixel. Where samples are to share products, a few are compared.
    """
    if dispatch.goes_tap_by_tap(c):
        return _weights(c)
    held = _weights(c) * (1 + (not ordered) + _in_pixels(c))
    if dispatch.tiled(c):
        return held + tiling.filter_bytes(c)
    return held + (joined.probe_bytes(c) if dispatch.joins(c) else 0)


def _in_pixels(c: Correlation) -> bool:
    return c.channels_last or dispatch.plain_kernel(c) == "pixels"


@lru_cache(maxsize=4096)
def rearranged_bytes(c: Correlation, ordered: bool) -> int:
    """What `correlate` and its adjoints hold of the weights in another form, and its gradient in shares."""
    if bordered.suits(c):
        return rearranged_bytes(bordered.unbordered(c), ordered) + bordered.strip_bytes(c)
    weights, both = _weights(c), (c, *dispatch.phase_correlations(c))
    held = weights * (1 + (not ordered) + any(map(_in_pixels, both)))
    plain = dispatch.plain_weight(c)
    if plain in (pixels.backward_weight, channels_last.backward_weight):
        summed = weights * SHARES
    else:
        several = plain is flat.backward_weight or any(k.suits(c) for k in SUMMED)
        several = several or patch_sums.share_count(c) > 1
        summed = weights * (1 + SHARES) if several and not rowwise.suits(c) else 0
    # The gradient's channels are the outputs, so that it may have larger tiles.
    tiled = [each for each in both if dispatch.tiled(each)]
    if not tiled:
        probes = [joined.probe_bytes(each) for each in both if dispatch.joins(each)]
        if dispatch.input_kernel(c) is scattered.backward_input:
            probes.append(scattered.probe_bytes(c))
        return held + summed + max(probes, default=0)
    shares = filtering.share_bytes(c) if dispatch.by_tiles(c) else 0
    return held + summed + max(map(tiling.filter_bytes, tiled)) + shares


def _weights(c: Correlation) -> int:
    return c.groups * c.outputs * c.channels * c.taps * c.itemsize
