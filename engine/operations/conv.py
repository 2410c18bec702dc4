"""Convolution as the field means it: cross-correlation of the input with a bank of filters.

    y[n, o, p] = bias[o] + Σ_{c,k} weight[o, c, k] · x[n, c, p·stride + k·dilation − low]

with c over the input channels of o's group. Formulas as in PyTorch's Conv1d to Conv3d and ONNX's Conv.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from engine.convolution import (
    Convolution,
    ConvolutionConfig,
)
from engine.errors import InvalidValue, fail
from engine.geometry import Axis, extent, strided_out
from engine.kernels.dispatch import (
    correlate,
    correlate_input,
    correlate_weight,
)
from engine.layouts import sample_tail
from engine.operation import Tails, require_groups, require_output
from engine.options import Choice, option
from engine.plans import Plan
from engine.reading import resolve_padding

Array = NDArray[Any]

MODES = ("zeros", "reflect", "replicate", "circular")


@dataclass(frozen=True)
class ConvConfig(ConvolutionConfig):
    """The fields of conv."""

    padding_mode: str = option(Choice(MODES), "What stands in the padding.", "zeros")


class Conv(Convolution):
    """See the module."""

    name = "conv"
    summary = "Convolution (cross-correlation), with groups, dilation and a fused activation."
    config = ConvConfig
    canonical = "OI"
    examples = (
        {"config": {"padding": 1}, "shapes": {"x": [1, 1, 4, 4], "weight": [2, 1, 3, 3]}},
        {
            "config": {"stride": 2, "groups": 2, "activation": "relu"},
            "shapes": {"x": [2, 4, 5], "weight": [4, 2, 3], "bias": [4]},
        },
    )

    def plan(self, config: ConvConfig, tails: Tails, dtype: str) -> Plan:
        reading = self.reading(config, tails)
        require_groups(reading.channels, config.groups, "x", reading.channel_axis)
        require_groups(reading.outer, config.groups, "weight", reading.order[0])
        if not self.fits(config.groups, reading.channels, reading.outer, reading.inner):
            expected = reading.channels // config.groups
            what = "input channels per group"
            raise self.misfit(config, tails, reading.order[1], what, expected)
        axes = tuple(
            self._axis(config, reading.sizes, reading.kernel, i) for i in range(len(reading.sizes))
        )
        positions = tuple(axis.out for axis in axes)
        needed = [axis.extent - axis.low - axis.high for axis in axes]
        require_output(positions, reading.sizes, needed, reading.channels_last)
        correlation = reading.correlation(
            axes, config.groups, config.padding_mode, config.algorithm, dtype
        )
        y = sample_tail(reading.outer, positions, reading.channels_last)
        return self.planned(config, tails, dtype, reading, y, reading.outer, correlation)

    def fits(self, groups: int, channels: int, outer: int, inner: int) -> bool:
        return not outer % groups and inner * groups == channels

    @staticmethod
    def _axis(config: ConvConfig, sizes: Sequence[int], kernel: Sequence[int], axis: int) -> Axis:
        size, stride, dilation = sizes[axis], config.stride[axis], config.dilation[axis]
        reach = extent(kernel[axis], dilation)
        low, high = resolve_padding(config.padding, axis, len(sizes), size, reach, stride)
        most = {"reflect": size - 1, "circular": size}.get(config.padding_mode)
        if most is not None and max(low, high) > most:
            loc = ("config", "padding")
            msg = f"{config.padding_mode} padding is larger than the input allows"
            raise fail(InvalidValue, loc, msg, f"at most {most} on axis {axis}", max(low, high))
        out = strided_out(size, reach, stride, low, high)
        return Axis(size, kernel[axis], stride, dilation, low, high, out)

    apply = staticmethod(correlate)
    apply_input = staticmethod(correlate_input)
    apply_weight = staticmethod(correlate_weight)


OPERATION = Conv()
