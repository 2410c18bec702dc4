"""How the tensors of a convolution map to the arrays of its correlation, as views where they can be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.correlation import Correlation
from engine.kernels.dispatch import adjoint_goes_tap_by_tap, goes_tap_by_tap
from engine.kernels.turning import laid_out, tap_by_tap
from engine.layouts import channels_first

Array = NDArray[Any]


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
        """True where weights are read as they come: in their order, or, for 1×1, in any."""
        c = self.correlation
        return self._canonically_ordered or (c.pointwise and c.groups == 1)

    @cached_property
    def _canonically_ordered(self) -> bool:
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

    def weights(self, weight: Array, *, adjoint: bool) -> Array:
        """Weights as the correlation or its adjoint takes them: (G, O, C·K) in order; for 1×1 as they lie.

        There products read them in any order in less time than laying them out takes. Where it goes tap by
        tap they are (1, O, K·C) for the correlation, and a view (1, O, C, *K) for the adjoint.
        """
        c, weight = self.correlation, self._canonical(weight, 0)
        if adjoint and adjoint_goes_tap_by_tap(c):
            return weight[None]
        if not adjoint and goes_tap_by_tap(c):
            return tap_by_tap(weight)
        return (weight if self.ordered else laid_out(weight)).reshape(self._weights)

    def gradients(self, weights: Array) -> Array:
        """A view (R, G, O, C, *K) of the gradients of R weights."""
        return _split(self._canonical(weights, 1), self.correlation.groups)

    def _canonical(self, weight: Array, leading: int) -> Array:
        """A view with the axes after the leading ones, and the kernel, as the correlation reads them."""
        if self._canonically_ordered:
            return weight
        view = weight.transpose(*range(leading), *(leading + axis for axis in self.order))
        return np.flip(view, tuple(range(leading + 2, view.ndim))) if self.flipped else view


def _split(a: Array, groups: int) -> Array:
    """A view with axis 1 split into (groups, members of a group)."""
    return a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
