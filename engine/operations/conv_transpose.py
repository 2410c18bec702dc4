"""Transposed convolution: the exact adjoint in x of the convolution with the same config.

    y[n, o, i·stride + k·dilation − low] += x[n, c, i] · weight[c, o, k]

Formulas as in PyTorch's ConvTranspose1d to 3d and ONNX's ConvTranspose. Named paddings are those of the
convolution it is the adjoint of; `same` gives output = input × stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.convolution import (
    Convolution,
    ConvolutionConfig,
)
from engine.errors import InvalidValue, fail
from engine.geometry import Axis, extent, halved
from engine.kernels.correlation import Correlation
from engine.kernels.dispatch import correlate, correlate_input, correlate_weight
from engine.kernels.nan import settle
from engine.layouts import sample_tail
from engine.operation import Tails, require_groups, require_output
from engine.options import PerAxis, option
from engine.plans import Plan
from engine.reading import Reading, resolve_padding

Array = NDArray[Any]


@dataclass(frozen=True)
class ConvTransposeConfig(ConvolutionConfig):
    """The fields of conv_transpose."""

    output_padding: tuple[int, ...] = option(
        PerAxis(0), "Extra outputs at the high end; less than max(stride, dilation).", 0
    )
    output_size: tuple[int, ...] | None = option(
        PerAxis(1),
        "Spatial size of y, which settles output_padding (one that is given has to agree); with"
        " padding same, the padding.",
        None,
    )


class ConvTranspose(Convolution):
    """See the module."""

    name = "conv_transpose"
    summary = "Transposed convolution, the adjoint of conv in x."
    config = ConvTransposeConfig
    canonical = "IO"
    adjoint = True
    examples = (
        {
            "config": {"stride": 2, "padding": 1},
            "shapes": {"x": [1, 2, 3, 3], "weight": [2, 1, 4, 4], "bias": [1]},
        },
    )

    def plan(self, config: ConvTransposeConfig, tails: Tails, dtype: str) -> Plan:
        reading = self.reading(config, tails)
        require_groups(reading.channels, config.groups, "x", reading.channel_axis)
        if not self.fits(config.groups, reading.channels, reading.outer, reading.inner):
            raise self.misfit(config, tails, reading.order[0], "input channels", reading.channels)
        axes = tuple(self._axis(config, reading, i) for i in range(len(reading.sizes)))
        positions = tuple(axis.size for axis in axes)
        needed = [
            reading.sizes[i] + -(-(1 - n) // config.stride[i]) for i, n in enumerate(positions)
        ]
        require_output(positions, reading.sizes, needed, reading.channels_last)
        # The convolution whose adjoint this is: it reads y and gives x.
        correlation = reading.correlation(axes, config.groups, "zeros", config.algorithm, dtype)
        outputs = reading.inner * config.groups
        y = sample_tail(outputs, positions, reading.channels_last)
        return self.planned(config, tails, dtype, reading, y, outputs, correlation)

    def fits(self, groups: int, channels: int, outer: int, inner: int) -> bool:  # noqa: ARG002
        return outer == channels and not channels % groups

    def _axis(self, config: ConvTransposeConfig, reading: Reading, axis: int) -> Axis:
        count, kernel = reading.sizes[axis], reading.kernel[axis]
        stride, dilation = config.stride[axis], config.dilation[axis]
        window = extent(kernel, dilation)
        extra, limit = config.output_padding[axis], max(stride, dilation)
        if extra >= limit:
            loc = ("config", "output_padding", axis)
            raise fail(InvalidValue, loc, "too large", f"less than {limit} on axis {axis}", extra)
        reach = (count - 1) * stride + window
        wanted = None if config.output_size is None else config.output_size[axis]
        if config.padding in _SAME:
            size = count * stride if wanted is None else wanted
            low, high = halved(max(reach + extra - size, 0), config.padding == "same_lower")
        else:
            dims = len(reading.sizes)
            low, high = resolve_padding(config.padding, axis, dims, count, window, stride)
            size = reach - low - high + extra if wanted is None else wanted
        if wanted is not None:
            smallest = reach - low - high
            if smallest + limit > 1:
                _check_size(config, axis, wanted, smallest)
            else:
                size = smallest + limit - 1  # none can be reached that is not empty
        return Axis(size, kernel, stride, dilation, low, high, count)

    def sight(self, axis: Axis) -> int:
        return axis.sight

    def apply(self, c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
        correlate_input(c, x, w, y)
        if bias is not None:
            y += bias.reshape(c.groups, -1, *(1,) * len(c.axes))
            # Of a number and a finite one there is no NaN, and a NaN keeps its bits.
            if not np.isfinite(bias).all():
                settle(y)

    def apply_input(self, c: Correlation, dy: Array, w: Array, dx: Array) -> None:
        correlate(c, dy, w, None, dx)

    def apply_weight(
        self, c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array
    ) -> None:
        correlate_weight(c, dy, x, rows, dw)


_SAME = ("same", "same_lower")
"""Paddings that make an output of a given size, where they can."""


def _check_size(config: ConvTransposeConfig, axis: int, wanted: int, smallest: int) -> None:
    """Raise InvalidValue where an output_size cannot be, or contradicts the output_padding given."""
    limit, given = max(config.stride[axis], config.dilation[axis]), config.output_padding
    meant = wanted - smallest
    if not 0 <= meant < limit:
        loc = ("config", "output_size", axis)
        # The padding that a size settles is none where the size is too large, and else what it takes.
        least = 1 if config.padding in _SAME else max(1, smallest)
        expected = f"{least} to {smallest + limit - 1} on axis {axis}"
        raise fail(InvalidValue, loc, "not reachable with this input", expected, wanted)
    # Zeros alone are the default, which every size settles.
    if any(given) and given[axis] != meant:
        loc = ("config", "output_padding", axis)
        expected = f"{meant} on axis {axis}, or nothing"
        raise fail(InvalidValue, loc, "output_size means another", expected, given[axis])


OPERATION = ConvTranspose()
