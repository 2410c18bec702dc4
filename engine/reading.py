"""What the shapes of a convolution's `x` and `weight` say, in the layouts that its config names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.errors import InvalidValue, ShapeMismatch, fail
from engine.geometry import Axis, same_padding
from engine.kernels.correlation import Correlation
from engine.layouts import read_layout, read_weight_layout, split_tail
from engine.operation import Tails, require_tail
from engine.options import Pads
from engine.plans import compute_dtype


@dataclass(frozen=True)
class Reading:
    """What the shapes of x and weight say.

    Attributes:
        channels_last: whether x has its channels last.
        order: for each axis of the weight in its canonical order, its place in the given one.
        channels, sizes: of x; the sizes are those of its spatial axes.
        outer, inner: the weight's first two axes in their canonical order.
        kernel: taps along each spatial axis.
    """

    channels_last: bool
    order: tuple[int, ...]
    channels: int
    sizes: tuple[int, ...]
    outer: int
    inner: int
    kernel: tuple[int, ...]

    @property
    def taps_apart(self) -> bool:
        """Whether weights end with an axis of channels, so that those of a tap lie side by side."""
        return len(self.order) - 1 in self.order[:2]

    @property
    def channel_axis(self) -> int:
        """Where the channels stand in the shape of x."""
        return len(self.sizes) + 1 if self.channels_last else 1

    def correlation(
        self, axes: tuple[Axis, ...], groups: int, mode: str, wanted: str, dtype: str
    ) -> Correlation:
        """The correlation with these weights: their outer axis is that of its outputs, all groups together.

        Args:
            mode: of the padding; wanted: the algorithm asked for; dtype: of the tensors.
        """
        return Correlation(
            axes=axes,
            groups=groups,
            channels=self.inner,
            outputs=self.outer // groups,
            mode=mode,
            itemsize=np.dtype(compute_dtype(dtype)).itemsize,
            wanted=wanted,
            channels_last=self.channels_last,
            taps_apart=self.taps_apart,
        )


def read_shapes(
    layout: str | None, weight_layout: str | None, canonical: str, tails: Tails
) -> Reading:
    """Layouts, channels and taps of the tensors.

    Args:
        canonical: the order of the weight's first two axes.

    Raises:
        ShapeMismatch: x and weight have not as many axes; MissingField: one is not there.
    """
    dims = len(require_tail(tails, "x")) - 1
    channels_last = read_layout(layout, dims)
    order = read_weight_layout(weight_layout, dims, channels_last, canonical)
    weight = require_tail(tails, "weight")
    _require_rank(weight, dims)
    channels, sizes = split_tail(tails["x"], channels_last)
    outer, inner, *kernel = (weight[axis] for axis in order)
    return Reading(channels_last, order, channels, sizes, outer, inner, tuple(kernel))


def _require_rank(weight: tuple[int, ...], dims: int) -> None:
    """Raise ShapeMismatch unless it has as many axes as x; with one more, x may lack that of N."""
    rank = dims + 2
    if len(weight) == rank:
        return
    expected = f"{rank} axes, as x has (samples, channels, {dims} spatial)"
    if len(weight) == rank + 1:
        expected += f"; or an x with {rank + 1}, if its axis of samples was left out"
    loc = ("weight", "shape")
    raise fail(ShapeMismatch, loc, "x has another number of axes", expected, list(weight))


def resolve_padding(
    padding: str | Pads, axis: int, dims: int, size: int, extent: int, stride: int
) -> tuple[int, int]:
    """The (low, high) padding of one axis of a convolution.

    Args:
        padding: a name, or the pairs of all axes.
        axis, dims: which of how many spatial axes it is.
        size: inputs along the axis; extent: of a window on it.

    Raises:
        InvalidValue: causal, in more dimensions than one.
    """
    if not isinstance(padding, str):
        return padding[axis]
    if padding == "valid":
        return 0, 0
    if padding == "full":
        return extent - 1, extent - 1
    if padding == "causal":
        if dims != 1:
            loc = ("config", "padding")
            raise fail(InvalidValue, loc, "causal is for one spatial dimension", "1", dims)
        return extent - 1, 0
    return same_padding(size, extent, stride, lower=padding == "same_lower")
