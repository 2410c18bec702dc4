"""Products of few binary digits: a plain sum of them makes hardly an error (see `promise`).

Whole numbers have few, and so do numbers in half precision. So do tenths times tens, though tenths need all
digits: they come to whole numbers but for what rounding left of them, and each addition rounds that away.
So products tell, not their factors, and what is no more than a unit in their last place counts for nothing.

Numbers count by their size. What is far smaller than others, be it some numbers, channels or filters, adds
as little to the error of a plain sum as to its results, while tiles make an error of the largest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges

Array = NDArray[Any]
Means = NDArray[np.float64]
Places = NDArray[np.intp]

DIGITS = 24
"""Binary digits of a float32."""

LEFT = 2
"""Digits of a product that rounding of its factors may have left."""

SHORT = 0.2
"""The share of products that may have one more digit than few. Of random ones half have."""

LARGEST = 8
"""Channels, filters, or samples, that are looked at: those with the largest numbers."""

EACH = 8
"""Numbers along an axis, at most, that are looked at of each."""

FADED = 3
"""Powers of two below the largest from which numbers count for nothing."""

TOGETHER = 8
"""Samples looked at together."""

_PLACES = DIGITS - 1
_MAGNITUDE = (1 << 31) - 1


class Taps(NamedTuple):
    """Of the filters with the largest numbers, those of each channel (C, n), and the sums (C) of |w|."""

    numbers: Array
    sums: Array

    @classmethod
    def of(cls, w: Array, means: Means) -> Taps:
        """Of filters w (O, C, K, 9), the means of whose |w| are (O)."""
        numbers = w[_largest(means)].swapaxes(0, 1).reshape(w.shape[1], -1)
        return cls(numbers, np.add.reduce(np.abs(numbers), axis=1))


def short_sums(x: Array, means: Means, taps: Taps) -> NDArray[np.bool_]:
    """Which samples of x (N, C, *S) in float32, the means of whose |x| are (N, C), have short products."""
    found = np.empty(len(x), np.bool_)
    for lo, hi in ranges(len(x), TOGETHER):
        top = _largest(means[lo:hi] * taps.sums)
        numbers, factors = _some(x, np.arange(lo, hi), top), taps.numbers[top]
        pairs = np.arange(factors.shape[2])
        # Each factor meets one number: numbers come several times where they are fewer, else some do not.
        step = -(-numbers.shape[2] // len(pairs))
        products = numbers[..., pairs * step % numbers.shape[2]] * factors
        found[lo:hi] = _short(products.reshape(hi - lo, -1))
    return found


def short_correlation(x: Array, dy: Array, left_means: Means, right_means: Means) -> bool:
    """True if x (N, C, *S) and dy (N, O, *P), with means (N, C) and (N, O), have short products."""
    samples = _largest(left_means.max(1) * right_means.max(1))
    left = _some(x, samples, _largest(left_means[samples]))
    right = _some(dy, samples, _largest(right_means[samples]))
    channels, numbers = np.minimum(left.shape[1:], right.shape[1:])
    products = left[:, :channels, :numbers] * right[:, :channels, :numbers]
    return bool(_short(products.reshape(1, -1))[0])


def short_channels(a: Array) -> NDArray[np.bool_]:
    """In which of N samples the first and middle rows of a channel begin with numbers of half the digits.

    They are not all 0. a is (N, K, ..., H, W) in float32.
    """
    begun = a[..., :: max(1, a.shape[-2] // 2), :8].view(np.uint32)
    found = np.bitwise_or.reduce(begun, axis=tuple(range(2, begun.ndim)))
    return ((found & (1 << DIGITS // 2) - 1 == 0) & (found << 1 != 0)).any(axis=1)


def _largest(means: Means) -> Places:
    """Where the largest of some numbers stand, along the last axis."""
    count = means.shape[-1]
    if count <= LARGEST:
        return np.broadcast_to(np.arange(count), means.shape)
    return means.argpartition(-LARGEST)[..., -LARGEST:]


def _some(a: Array, samples: Places, top: Places) -> Array:
    """Some numbers (m, k, n) of the channels `top` (m, k) of m samples of a (N, K, *S)."""
    few = tuple(slice(None, None, -(-size // EACH)) for size in a.shape[2:])
    return a[:, :, *few][samples[:, None], top].reshape(*top.shape, -1)


def _short(products: Array) -> NDArray[np.bool_]:
    """In which rows of products (R, n) most need fewer digits than a float32 has."""
    bits = products.view(np.uint32) & _MAGNITUDE
    faded = np.maximum.reduce(bits, axis=1, keepdims=True)
    faded -= np.minimum(faded, FADED << _PLACES)
    counted = bits > faded
    # Rounded to the digits that count, which may carry into the exponent.
    longer = (bits + (1 << LEFT - 1) & 1 << LEFT).astype(np.bool_) & counted
    return np.add.reduce(longer, axis=1) <= SHORT * np.add.reduce(counted, axis=1)
