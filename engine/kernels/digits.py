"""How many binary digits numbers need: a plain sum of products of few makes no error (see `promise`).

Numbers count by their size. What is far smaller than others, be it some numbers, channels or filters, adds
as little to the error of a plain sum as to its results, while tiles make an error of the largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DIGITS = 24
"""Binary digits of a float32."""

SHORT = 0.7
"""The share of numbers that are most. Of random ones half need all digits, three quarters all but one."""

LARGEST = 8
"""Channels, or filters, that are looked at: those with the largest numbers."""

FADED = 3
"""Powers of two below the largest from which numbers count for nothing."""

_PLACES = DIGITS - 1
_MAGNITUDE = (1 << 31) - 1


def digits(a: Array, means: Array) -> int:
    """The binary digits that most numbers of a (K, ..., H, W) in float32 need, but for zeros.

    Few numbers, here and there, tell, of the channels with the largest of K `means` of |a|. Others among
    them make a plain sum no less exact where they are few.
    """
    some = a[(slice(None), *(slice(None, None, max(1, size // 8)) for size in a.shape[1:]))]
    bits = some[_largest(means)].reshape(-1).view(np.uint32) & _MAGNITUDE
    bits = bits[bits > max(int(np.maximum.reduce(bits)) - (FADED << _PLACES), 0)]
    if not bits.size:
        return 1
    fractions = bits & (1 << _PLACES) - 1 | 1 << _PLACES
    last = fractions & -fractions
    place = int(len(last) * (1 - SHORT))
    return DIGITS + 1 - int(np.partition(last, place)[place]).bit_length()


def filter_digits(w: Array, means: Array) -> int:
    """Those that most numbers of the filters w (O, C, D, 9) need, with the largest of O `means` of |w|."""
    largest = w[_largest(means)]
    taps = np.add.reduce(np.abs(largest), axis=0).reshape(w.shape[1], -1)
    return digits(largest.swapaxes(0, 1), taps @ np.ones(taps.shape[1], taps.dtype))


def short_channels(a: Array) -> bool:
    """True if the first and the middle row of some of K channels begin with numbers of half the digits.

    They are not all 0. a is (K, ..., H, W) in float32.
    """
    begun = a[..., :: max(1, a.shape[-2] // 2), :8].view(np.uint32)
    found = np.bitwise_or.reduce(begun, axis=tuple(range(1, begun.ndim)))
    return bool(((found & (1 << DIGITS // 2) - 1 == 0) & (found << 1 != 0)).any())


def _largest(means: Array) -> NDArray[np.intp] | slice:
    """Where the largest of some numbers stand."""
    if len(means) <= LARGEST:
        return slice(None)
    return np.argpartition(means, -LARGEST)[-LARGEST:]
