"""Which depthwise layers go pixel by pixel (`pixels`), rather than by products with banded matrices.

Bounds on integers of the plan, fitted to random layers that were timed both ways on one thread.
"""

from __future__ import annotations

from math import prod

from engine.kernels.correlation import Correlation
from engine.kernels.spacing import READ

MOST_TAPS, MOST_WORK = 25, 10_000
"""Taps above which products with banded matrices are faster; but not for small maps, whose bands are made
for few strips, up to so many taps of all outputs of a channel."""

LEAST_RUNS = 200_000
"""Pixels of a map, times the square of their channels, from which they take less time than other ways."""

LEAST_SUMMED = 32
"""Channels from which that is so for the gradient of the weight."""

LEAST_TURNED, LEAST_TAPS = 64, 6
"""Channels, and taps, from which maps with channels first take less time so."""

OUTPUT_BYTES, INPUT_BYTES = 1 << 10, 3200
"""Bytes of one channel's outputs, and of its inputs, up to which they do."""


def pay(c: Correlation) -> bool:
    """True where the forward map takes less time by pixels than by what else there is, by random layers."""
    if not _few_taps(c, OUTPUT_BYTES, MOST_WORK):
        return False
    return c.groups**2 * c.places >= LEAST_RUNS if c.channels_last else _worth_turning(c)


def pay_for_weight(c: Correlation) -> bool:
    """The same for the gradient of the weight."""
    if not _few_taps(c, OUTPUT_BYTES // 2, MOST_WORK // 2):
        return False
    return c.groups >= LEAST_SUMMED if c.channels_last else _worth_turning(c)


def _few_taps(c: Correlation, small: int, work: int) -> bool:
    """True for few taps; small maps, by the bytes of a channel's outputs, may have more of them."""
    if c.taps <= MOST_TAPS:
        return True
    return c.places * c.itemsize <= small and c.taps * c.places <= work


def _worth_turning(c: Correlation) -> bool:
    # Numbers a multiple of READ bytes apart share lines of the cache, which makes turning them slow.
    inputs = prod(axis.size for axis in c.axes) * c.itemsize
    small = inputs <= INPUT_BYTES and inputs % READ and c.places * c.itemsize <= OUTPUT_BYTES
    return bool(small) and c.groups >= LEAST_TURNED and c.taps >= LEAST_TAPS
