"""What the pools share: how their windows are resolved from the config and the input's shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Protocol

from engine.geometry import Adaptive, Axis, Windows, extent, same_padding, strided_out
from engine.kernels.pools.pooling import Pooling
from engine.kernels.pools.windows import passes
from engine.layouts import read_layout, sample_tail, split_tail
from engine.operation import Parameterless, Tails, require_output, require_tail
from engine.options import Flag, Letters, Padding, Pads, PerAxis, option
from engine.plans import Plan

SHARED = 3
"""Taps for each output below which adaptive windows that share one input each go as fixed ones: those look
tap by tap at what others look at as runs."""

LONGEST = 9
"""Taps of a window below which they do."""

POOL_PADDINGS = ("valid", "same", "same_lower")


@dataclass(frozen=True)
class LayoutConfig:
    """The field that every pool has."""

    layout: str | None = option(
        Letters.of_samples(), "Order of the axes of x, y and their gradients.", None
    )


@dataclass(frozen=True)
class WindowConfig(LayoutConfig):
    """The fields of pools with a fixed window."""

    kernel: tuple[int, ...] = option(PerAxis(1), "Size of the window, per spatial axis.")
    stride: tuple[int, ...] | None = option(
        PerAxis(1), "Step between windows; by default the kernel's size.", None
    )
    padding: str | Pads = option(
        Padding(POOL_PADDINGS),
        "Padding: an integer, one per axis, a [low, high] pair per axis, or a name.",
        0,
    )
    dilation: tuple[int, ...] = option(
        PerAxis(1), "Step between the members of a window; 1 is none.", 1
    )
    ceil_mode: bool = option(
        Flag(), "True rounds the output's size up: the last window may reach past the end.", False
    )


@dataclass(frozen=True)
class AdaptiveConfig(LayoutConfig):
    """The fields of adaptive pools."""

    output_size: tuple[int | None, ...] = option(
        PerAxis(1, hole=True), "Size of y per spatial axis; null keeps the input's. 1 is global."
    )


@dataclass(frozen=True)
class Geometry:
    """A pool resolved: its windows, and where the channels are."""

    pooling: Pooling
    channels_last: bool


class Pool(Parameterless):
    """The common part of the pools: everything but what happens in a window."""

    forward_inputs: ClassVar[Mapping[str, bool]] = {"x": True}
    backward_inputs: ClassVar[Mapping[str, bool]] = {"x": True, "dy": True}

    def plan(self, config: Any, tails: Tails, dtype: str) -> Plan:
        x = require_tail(tails, "x")
        channels_last = read_layout(config.layout, len(x) - 1)
        channels, sizes = split_tail(x, channels_last)
        axes = self.windows(config, sizes, channels_last)
        pooling = Pooling(axes, channels, channels_last)
        y = sample_tail(channels, pooling.positions, channels_last)
        # Padding that makes fixed windows of adaptive ones is nobody's but ours.
        own = not isinstance(config, AdaptiveConfig)
        pads = [
            (axis.low, axis.high) if own and isinstance(axis, Axis) else (0, 0) for axis in axes
        ]
        members = pooling.visits
        if not own:
            members = channels * prod(Adaptive(axis.size, axis.out).visits for axis in axes)
        return Plan(
            operation=self.name,
            config=config,
            dtype=dtype,
            tails=(("x", x), ("dx", x), ("y", y), ("dy", y), ("indices", y)),
            padding=tuple(pads),
            receptive_field=tuple(axis.extent for axis in axes),
            flops=(members, members),
            steps=self.steps(config, pooling),
            geometry=Geometry(pooling, channels_last),
            scratch_bytes=pooling.workspace_bytes,
        )

    def windows(
        self, config: Any, sizes: Sequence[int], channels_last: bool
    ) -> tuple[Windows, ...]:
        """The windows along each spatial axis."""
        return fixed_windows(config, sizes, channels_last)

    def steps(self, config: Any, pooling: Pooling) -> int:  # noqa: ARG002
        """Passes of the interpreter over the blocks of one sample."""
        return pooling.block_count * sum(passes(axis) for axis in pooling.axes)


class _Fixed(Protocol):
    @property
    def kernel(self) -> tuple[int, ...]: ...
    @property
    def stride(self) -> tuple[int, ...] | None: ...
    @property
    def padding(self) -> str | Pads: ...
    @property
    def dilation(self) -> tuple[int, ...]: ...
    @property
    def ceil_mode(self) -> bool: ...


def fixed_windows(config: _Fixed, sizes: Sequence[int], channels_last: bool) -> tuple[Axis, ...]:
    """Windows of one size sliding along each axis; raises EmptyOutput."""
    axes = []
    for i, size in enumerate(sizes):
        kernel, dilation = config.kernel[i], config.dilation[i]
        stride = kernel if config.stride is None else config.stride[i]
        reach = extent(kernel, dilation)
        if config.padding == "valid":
            low, high = 0, 0
        elif isinstance(config.padding, str):
            low, high = same_padding(size, reach, stride, config.padding == "same_lower")
        else:
            low, high = config.padding[i]
        out = strided_out(size, reach, stride, low, high, config.ceil_mode)
        axes.append(Axis(size, kernel, stride, dilation, low, high, out))
    # With ceil mode even the first window may reach past the end, by less than a stride.
    needed = [
        axis.extent - axis.low - axis.high - (axis.stride - 1 if config.ceil_mode else 0)
        for axis in axes
    ]
    require_output([axis.out for axis in axes], sizes, needed, channels_last)
    if all(axis.out == 1 for axis in axes):
        # The step from the only window is nowhere seen; by itself, it shares nothing.
        return tuple(replace(axis, stride=axis.kernel) for axis in axes)
    return tuple(axes)


def adaptive_windows(
    config: AdaptiveConfig,
    sizes: Sequence[int],
    channels_last: bool,  # noqa: ARG001
) -> tuple[Windows, ...]:
    """Windows that divide each axis as evenly as integers allow; fixed ones where all are of one size."""
    pairs = [
        (size, size if out is None else out)
        for size, out in zip(sizes, config.output_size, strict=True)
    ]
    shared = [_sharing(*pair) for pair in pairs]
    # Beside runs, taps gain nothing.
    return tuple(filter(None, shared)) if all(shared) else tuple(_adaptive(*p) for p in pairs)


def _adaptive(size: int, out: int) -> Windows:
    kernel, rest = divmod(size, out)
    return Adaptive(size, out) if rest else Axis(size, kernel, kernel, 1, 0, 0, out)


def _sharing(size: int, out: int) -> Axis | None:
    """Fixed windows of few taps that share no input, or one with the next.

    They share one where there is one input more than for as many side by side, or one less: then the first
    and the last begin and end as if there were one more.
    """
    kernel, rest = divmod(size, out)
    stride, pad = (kernel, 0) if rest <= 1 else (kernel + 1, 1)
    if rest not in (0, 1, out - 1) or not 1 <= stride < min(LONGEST, SHARED * out + 1):
        return None
    return Axis(size, stride + (rest > 0), stride, 1, pad, pad, out)
