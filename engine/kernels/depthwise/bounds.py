"""Which depthwise layers go pixel by pixel (`pixels`), rather than by products with banded matrices.

Bounds on integers of the plan, fitted to random layers that were timed both ways on one thread.
"""

from __future__ import annotations

from math import prod

from engine.kernels.correlation import Correlation
from engine.kernels.spacing import READ

VOLUME = 3
"""Axes of a volume."""

MOST_TAPS = 25
"""Taps above which products with banded matrices are faster, but for small maps."""

MOST_WORK = 10_000
"""Taps of all outputs of a channel up to which small maps go by pixels all the same: bands are made for few
strips of them."""

LEAST_RUNS = 200_000
"""Pixels of a map, times the square of its channels, from which maps with channels last go by pixels."""

LEAST_SUMMED = 32
"""Channels from which they do for the gradient of the weight."""

LEAST_TURNED = 64
"""Channels from which maps with channels first are worth turning, to go by pixels."""

LEAST_TAPS = 6
"""Taps from which they are."""

INPUT_BYTES = 3200
"""Bytes of one channel's inputs up to which they are."""

OUTPUT_BYTES = 1 << 10
"""Bytes of one channel's outputs up to which they are, and up to which a map is small."""

VOLUME_TAPS = 125
"""Taps above which volumes go by what else there is."""

VOLUME_WEIGHT_TAPS = 27
"""The same for the gradient of the weight, but with channels last where windows lie apart."""

VOLUME_INPUT_BYTES = 12_800
"""`INPUT_BYTES` of volumes."""

VOLUME_OUTPUT_BYTES = 1 << 12
"""`OUTPUT_BYTES` of volumes."""

LEAST_APART = 24
"""Channels, where they come last, from which the gradient of the weight of volumes goes by pixels where
windows lie apart."""


def pay(c: Correlation) -> bool:
    """True where the forward map takes less time by pixels than by what else there is, by random layers."""
    if len(c.axes) == VOLUME:
        return _volumes_pay(c)
    if not _few_taps(c, OUTPUT_BYTES, MOST_WORK):
        return False
    return _long_runs(c) if c.channels_last else _worth_turning(c, INPUT_BYTES, OUTPUT_BYTES)


def pay_for_weight(c: Correlation) -> bool:
    """The same for the gradient of the weight."""
    if len(c.axes) == VOLUME:
        return _volumes_pay_for_weight(c)
    if not _few_taps(c, OUTPUT_BYTES // 2, MOST_WORK // 2):
        return False
    if c.channels_last:
        return c.groups >= LEAST_SUMMED
    return _worth_turning(c, INPUT_BYTES, OUTPUT_BYTES)


def _volumes_pay(c: Correlation) -> bool:
    if c.taps > VOLUME_TAPS:
        return False
    if c.channels_last:
        # Where windows lie apart, a run is a single pixel.
        return _long_runs(c) and (_together(c) or c.groups >= LEAST_TURNED)
    return _worth_turning(c, VOLUME_INPUT_BYTES, VOLUME_OUTPUT_BYTES)


def _volumes_pay_for_weight(c: Correlation) -> bool:
    few = c.taps <= VOLUME_WEIGHT_TAPS
    if c.channels_last:
        apart = not _together(c) and c.groups >= LEAST_APART and c.taps <= VOLUME_TAPS
        return apart or (few and c.groups >= LEAST_TURNED)
    return few and _worth_turning(c, VOLUME_INPUT_BYTES, VOLUME_OUTPUT_BYTES)


def _together(c: Correlation) -> bool:
    return c.axes[-1].stride == 1


def _long_runs(c: Correlation) -> bool:
    return c.groups**2 * c.places >= LEAST_RUNS


def _few_taps(c: Correlation, small: int, work: int) -> bool:
    """True for few taps; small maps, by the bytes of a channel's outputs, may have more of them."""
    if c.taps <= MOST_TAPS:
        return True
    return c.places * c.itemsize <= small and c.taps * c.places <= work


def _worth_turning(c: Correlation, most_in: int, most_out: int) -> bool:
    # Numbers a multiple of READ bytes apart share lines of the cache, which makes turning them slow.
    inputs = prod(axis.size for axis in c.axes) * c.itemsize
    small = inputs <= most_in and inputs % READ and c.places * c.itemsize <= most_out
    return bool(small) and c.groups >= LEAST_TURNED and c.taps >= LEAST_TAPS
