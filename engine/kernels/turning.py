"""Weights in another order of their axes, laid out by several threads."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from engine.kernels.direct import slices
from engine.threads import aligned, for_each

Array = NDArray[Any]

COPIED = 64
"""Channels whose weights are laid out anew in one call."""

COPYING = 96
"""Work that takes as long as copying one number from a place of its own."""


def in_rows(weights: Array) -> Array:
    """A view of weights (G, C, O, *K) as an array of its own, each thread copying some channels."""
    found = aligned(weights.shape, weights.dtype)

    def part(channels: slice) -> None:
        found[:, channels] = weights[:, channels]

    cuts = ((channels,) for channels in slices(weights.shape[1], COPIED))
    for_each(part, cuts, COPYING * weights.size)
    return found
