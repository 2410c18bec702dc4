"""Layouts: one letter per axis, and the views that bring any of them to the canonical order.

Canonical is N C then spatial for samples, O I then spatial (I O for transposed convolutions) for
weights. Only views are made; nothing is copied.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from engine.errors import InvalidValue, Loc, fail
from engine.words import did_you_mean

Array = NDArray[Any]

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def read_layout(layout: str | None, dims: int) -> bool:
    """True for channels last; raises InvalidValue for what is no layout of `dims` dimensions."""
    first, last = f"NC{SPATIAL[dims]}", f"N{SPATIAL[dims]}C"
    if layout in (None, first, last):
        return layout == last
    msg = f"not a layout of x{did_you_mean(layout, (first, last))}"
    raise fail(InvalidValue, ("config", "layout"), msg, f"{first} or {last}", layout)


def read_weight_layout(
    layout: str | None, dims: int, channels_last: bool, canonical: str
) -> tuple[int, ...]:
    """The permutation that brings a weight to `canonical` ("OI" or "IO") followed by its taps."""
    letters = canonical + SPATIAL[dims]
    if layout is None:
        layout = SPATIAL[dims] + "IO" if channels_last else letters
    if sorted(layout) != sorted(letters):
        loc: Loc = ("config", "weight_layout")
        raise fail(InvalidValue, loc, "not a weight layout", f"an order of {letters}", layout)
    return tuple(layout.index(letter) for letter in letters)


def fitting(
    layouts: tuple[str | None, str | None],
    x: tuple[int, ...],
    weight: tuple[int, ...],
    canonical: str,
    fits: Callable[[int, int, int], bool],
) -> str:
    """The end of a message about channels that do not fit: layouts with which they would, or nothing.

    Args:
        layouts: of x and of the weight, as they were given.
        x, weight: shapes, of x without N.
        fits: whether channels of x and those of the weight, in the order of `canonical`, do.
    """
    dims = len(x) - 1
    (layout, weight_layout), spatial = layouts, SPATIAL[dims]
    last = read_layout(layout, dims)
    longest = max(
        weight[axis] for axis in read_weight_layout(weight_layout, dims, last, canonical)[2:]
    )
    orders = (f"OI{spatial}", f"IO{spatial}", f"{spatial}IO", f"{spatial}OI")
    tried = itertools.product((last, not last), (weight_layout, *orders))
    found: list[list[str]] = []
    for channels_last, order in tried:
        axes = read_weight_layout(order, dims, channels_last, canonical)
        outer, inner, *taps = (weight[axis] for axis in axes)
        channels, sizes = split_tail(x, channels_last)
        # Channels may be as many by chance; windows are hardly ever oblong, or longer than they were read.
        likely = set(taps) == {taps[0]} and taps[0] <= min(longest, *sizes)
        if likely and fits(channels, outer, inner):
            names = []
            if channels_last != last:
                names.append(f"layout N{spatial}C" if channels_last else f"layout NC{spatial}")
            if order != weight_layout:
                names.append(f"weight_layout {order}")
            found.append(names)
    fewest: list[str] = min(found, key=len, default=[])
    return f"; they would with {' and '.join(fewest)}" if fewest else ""


def channels_first(a: Array, channels_last: bool) -> Array:
    """A view (N, C, *S) of an array in either layout."""
    if not channels_last:
        return a
    # `moveaxis` takes six times as long.
    return a.transpose(0, a.ndim - 1, *range(1, a.ndim - 1))


def sample_tail(channels: int, spatial: tuple[int, ...], channels_last: bool) -> tuple[int, ...]:
    """A tensor's shape after N in its layout."""
    return (*spatial, channels) if channels_last else (channels, *spatial)


def split_tail(tail: tuple[int, ...], channels_last: bool) -> tuple[int, tuple[int, ...]]:
    """Channels and spatial sizes of a tensor's shape after N."""
    return (tail[-1], tail[:-1]) if channels_last else (tail[0], tail[1:])


def spatial_axis(axis: int, channels_last: bool) -> int:
    """Where the spatial axis `axis` stands in a tensor's shape."""
    return axis + (1 if channels_last else 2)
