"""How the tensors of a convolution map to the arrays of its correlation, as views where they can be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels.correlation import Correlation
from engine.layouts import channels_first
from engine.threads import check_stop

Array = NDArray[Any]

BLOCK = 1 << 20
"""Weights that are laid out between two questions whether to stop: some milliseconds."""


@dataclass(frozen=True)
class Arrangement:
    """A convolution resolved: the correlation, and how its tensors come.

    Attributes:
        channels_last: whether samples have their channels last.
        order: the permutation that brings a weight's axes to the order of the correlation.
        flipped: whether kernels come reversed.
    """

    correlation: Correlation
    channels_last: bool
    order: tuple[int, ...]
    flipped: bool

    @cached_property
    def ordered(self) -> bool:
        """True where weights come as the correlation reads them."""
        return not self.flipped and self.order == tuple(range(len(self.order)))

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        c = self.correlation
        return c.groups, c.outputs, c.channels * c.taps

    def grouped(self, samples: Array) -> Array:
        """A view (N, G, C, *S)."""
        a = channels_first(samples, self.channels_last) if self.channels_last else samples
        groups = self.correlation.groups
        return a[:, None] if groups == 1 else _split(a, groups)

    def weights(self, weight: Array) -> Array:
        """Weights as the correlation takes them: (G, O, C·K), contiguous."""
        if not self.ordered:
            weight = _laid_out(self._canonical(weight, 0))
        return weight.reshape(self._weights)

    def gradients(self, weights: Array) -> Array:
        """A view (R, G, O, C, *K) of the gradients of R weights."""
        return _split(self._canonical(weights, 1), self.correlation.groups)

    def _canonical(self, weight: Array, leading: int) -> Array:
        """A view with the axes after the leading ones, and the kernel, as the correlation reads them."""
        if self.ordered:
            return weight
        view = weight.transpose(*range(leading), *(leading + axis for axis in self.order))
        return np.flip(view, tuple(range(leading + 2, view.ndim))) if self.flipped else view


def _laid_out(view: Array) -> Array:
    """A contiguous array of weights in the order of their view, which it is where that is one."""
    if view.size <= BLOCK or view.flags.c_contiguous:
        return np.ascontiguousarray(view)
    result = np.empty(view.shape, view.dtype)
    for lo, hi in ranges(len(view), max(1, BLOCK * len(view) // view.size)):
        check_stop()
        result[lo:hi] = view[lo:hi]
    return result


def _split(a: Array, groups: int) -> Array:
    """A view with axis 1 split into (groups, members of a group)."""
    return a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
