"""How evenly numbers share their sum: what tells whether Winograd's tiles are as exact as promised.

A plain sum rounds where it adds, by as much as its partial sums are large. Where most numbers are 0, or far
smaller than a few others, it adds next to nothing, and its error is small for its result. Tiles add all
their numbers to each other, and their error is as large as ever. The errors are about

    plain:  u · Σ|a|          tiles:  u · √(n Σa²)

so that the square of their ratio is the spread n Σa² / (Σ|a|)²: 1 for numbers of one size, 1.6 for normal
ones, the inverse of their share where the others are 0, and thousands for the exponential of three times a
normal number. Spreads of two factors multiply.

Nor does a plain sum make an error where its products and sums are numbers of few digits.
"""

from __future__ import annotations

import itertools
from functools import cache
from math import frexp, gcd, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.geometry import ranges
from engine.kernels.gathering import as_items
from engine.kernels.winograd.tiling import TAPS, WIDTH, transforms

Array = NDArray[Any]
Means = NDArray[np.float64]

ROWS = 8
"""About so many rows of a plane tell how even its numbers are, and one of five where that is more."""

WEIGHTS = 1 << 16
"""Numbers of filters that tell how even those are."""

TOGETHER = 1 << 17
"""Numbers looked at together: they stay in the second-level cache."""

FEW = 9
"""So many channels are few: at 3, one channel above all others made 18 times a plain sum's error."""

SOME = 8
"""Of so many channels one is looked at first, whether its numbers alternate."""

ALTERNATING = 0.98
"""The share of neighbours with other signs from which on numbers alternate."""

LEAST_MEAN = 2.0**-116
"""The mean |a|, or product of two such means, below which transforms meet numbers of fewer digits."""

LOW, HIGH = 1e-12, 1e12
"""Between them neither squares of numbers nor sums of those leave the range of float32."""

TINY = float(np.finfo(np.float64).tiny)


class Sizes(NamedTuple):
    """The mean of |a|, and that of a², of numbers that are added."""

    mean: float
    square: float

    @classmethod
    def each(cls, means: Means, squares: Means) -> Sizes:
        """Of channels that are added one by one: the mean of a², and the root of that of squared means.

        So the spread is that of a channel, and most of those with the largest numbers.
        """
        return cls(float((means**2).mean()) ** 0.5, float(squares.mean()))

    @classmethod
    def together(cls, means: Means, squares: Means) -> list[Sizes]:
        """Of channels that are added to each other, those of N samples (N, K).

        Channels of different size make no sum more exact, plain or by tiles, unless so few count that a
        plain sum has hardly any numbers: those of nine in effect double the spread.
        """
        shares = means**2
        sums, count = np.add.reduce(shares, axis=1), means.shape[1]
        few = 1 + FEW * np.add.reduce(shares**2, axis=1) / np.maximum(sums**2, TINY)
        own = (sums / count) ** 0.5, np.add.reduce(squares, axis=1) / count * few
        return [cls(*each) for each in zip(*(a.tolist() for a in own), strict=True)]

    @property
    def spread(self) -> float:
        """The spread; infinite where all are 0, NaN where one is."""
        return self.square / self.mean**2 if self.mean else np.inf

    def with_one(self, largest: float, count: int) -> Sizes:
        """Those of `count` such numbers and a larger one, if it is far larger."""
        if not largest**2 > count * self.square:
            return self
        return Sizes(self.mean + largest / count, self.square + largest**2 / count)

    def largest(self, spread: float, count: int) -> float:
        """The |a| from which it takes `count` numbers, if it is among them, above a larger spread."""
        if count <= spread:
            return np.inf
        total, rest = count * self.mean, count - spread
        root = spread**2 * total**2 - rest * count * (
            count * self.square - spread * self.mean * total
        )
        return float(spread * total + root**0.5) / rest


def step(rows: int) -> int:
    """From one row that is looked at to the next.

    It shares no factor with 2, 3 or 4: maps that were made larger, and gradients from pools, may be 0 in
    all but every second to fourth row.
    """
    return next(n for n in itertools.count(max(5, rows // ROWS)) if gcd(n, 6) == 1)


def sizes(a: Array) -> tuple[Means, Means]:
    """The means of |a| and of a² (N, K), of N samples a (N, K, ..., H, W) in float32.

    Some of their rows tell. Those of a sample are the same bits whatever is beside it.
    """
    rows = a[..., :: step(a.shape[-2]), :]
    last = a.strides[1] == a.itemsize
    if last:
        # Parts are cut along the axis whose numbers lie farthest apart.
        rows = np.moveaxis(rows, 1, -1)
    size, channels = prod(rows.shape[1:]), a.shape[1]
    each = max(1, TOGETHER * rows.shape[1] // max(1, size))
    found = np.zeros((2, len(a), channels))
    for lo, hi in ranges(len(a), max(1, TOGETHER // max(1, size))):
        for k, end in ranges(rows.shape[1], each):
            some = slice(None) if last else slice(k, end)
            for own, sums in zip(found, _sums(rows[lo:hi, k:end], last), strict=True):
                own[lo:hi, some] += sums
    found /= size // channels
    return found[0], found[1]


def _sums(part: Array, last: bool) -> tuple[Array, Array]:
    """The sums (n, K) of |a| and of a² of a part (n, K, ...), or (n, ..., K) where they come last."""
    n, channels = len(part), part.shape[-1 if last else 1]
    b = np.abs(part, out=arena.part(0, part.shape, part.dtype)).reshape(
        (n, -1, channels) if last else (n, channels, -1)
    )
    # BLAS adds several times faster than NumPy.
    ones = np.ones(b.shape[1 if last else 2], b.dtype)
    scale: Array | float = 1.0
    sums = ones @ b if last else b @ ones
    # The sums tell whether all numbers are where they should be, without another look at them.
    least = LOW * len(ones)
    if not all(least < each < HIGH for each in np.maximum.reduce(sums, axis=1).tolist()):
        scales = [_scale(each) for each in np.maximum.reduce(b, axis=(1, 2))]
        scale = np.array(scales)[:, None]
        b *= scale[..., None].astype(b.dtype)
        sums = ones @ b if last else b @ ones
    if last:
        b *= b
    squares = ones @ b if last else np.vecdot(b, b)
    return sums / scale, squares / scale**2


def alternates(a: Array) -> NDArray[np.bool_]:
    """In which of N samples a (N, K, ..., H, W) numbers have the other sign of their neighbours in a row.

    Nearly all do. The first and the middle row of each plane tell. Sums of such stay small all the way.
    """
    rows = a[..., :: max(1, a.shape[-2] // 2), :]
    count = prod(rows.shape[1:-1]) * (rows.shape[-1] - 1)
    most = count - ALTERNATING * count
    # Where as many of some channels do not as may of all, the others need not be looked at.
    found = [
        alike < most and _alike(rows[n : n + 1])[0] < most
        for n, alike in enumerate(_alike(rows[:, ::SOME]))
    ]
    return np.array(found, np.bool_)


def _alike(rows: Array) -> list[int]:
    """How many numbers of each of N samples (N, ..., W) have the sign of the next in their row."""
    signs = np.signbit(rows)
    return [int(np.count_nonzero(each)) for each in signs[..., 1:] == signs[..., :-1]]


def exceeds(a: Array, limit: float) -> bool:
    """True if some |a| is above the limit."""
    if limit == np.inf:
        return False
    ends = np.maximum.reduce(a, axis=None), -np.minimum.reduce(a, axis=None)
    return bool(max(ends) > limit)


class Filters(NamedTuple):
    """How even filters are: the spread of those with the largest sums, and how their taps go together.

    Attributes:
        together: the sums, over some of all filters, of each tap times each other (9, 9).
        means: those of |w| of each.
        mean: the largest of these.
    """

    spread: float
    together: Means
    means: Means
    mean: float

    @classmethod
    def of(cls, w: Array) -> Filters:
        """Filters w (O, C, D, 9) in float32."""
        # An odd one, so that those of every second or fourth channel are not all that is seen.
        part = w[:, :: -(-w.size // WEIGHTS) | 1]
        # In the order of memory: turned filters, as gradients of inputs have them, take four times as long.
        lain = w[..., ::-1] if w.strides[-1] < 0 else w
        lain = lain.swapaxes(0, 1) if w.strides[0] < w.strides[1] else lain
        ends = np.maximum.reduce(lain, axis=None), -np.minimum.reduce(lain, axis=None)
        largest = float(np.maximum(*ends))
        scale = _scale(largest)
        b, beside = _lain(part), arena.part(1, part.shape, part.dtype)
        if scale != 1:
            b *= np.float32(scale)
        square = float(np.maximum.reduce(np.vecdot(b, b))) / b.shape[1]
        sums = np.abs(b, out=beside.reshape(b.shape)) @ np.ones(b.shape[1], b.dtype)
        means = sums.astype(np.float64) / b.shape[1]
        mean = float(np.maximum.reduce(means))
        spread = Sizes(mean, square).with_one(largest * scale, w[0].size).spread
        taps, same = b.reshape(-1, TAPS * TAPS), beside.reshape(-1, TAPS * TAPS)
        # Of an array and itself, BLAS makes half of the product in twice the time.
        np.copyto(same, taps)
        return cls(spread, (taps.T @ same).astype(np.float64), means / scale, mean / scale)

    def flat(self) -> float:
        """How much filters leave of a constant, beside those whose taps have nothing in common."""
        return self._beside(_ALL_ALIKE)

    def more(self, height: int) -> float:
        """How much more tiles of `height` outputs add up than of filters whose taps have nothing in common.

        Smooth ones come to more. The spread under such tiles is as much larger.
        """
        return self._beside(_amplified(height))

    def _beside(self, factors: Means) -> float:
        """What factors of pairs of taps make, beside what they make of taps that have nothing in common."""
        own = float(self.together.trace())
        return float(np.vdot(factors, self.together)) / own if own > 0 else 1.0


def _lain(part: Array) -> Array:
    """Filters (O, C, D, 9) as (O, C·D·9), one after another in this thread's scratch."""
    found = arena.part(0, part.shape, part.dtype)
    if part.strides[-1] == part.itemsize:
        as_items(found)[...] = as_items(part)
    else:
        found[...] = part
    return found.reshape(len(part), -1)


_ALL_ALIKE = np.ones((TAPS * TAPS, TAPS * TAPS))


@cache
def _amplified(height: int) -> Means:
    """What tiles add up of a filter's taps, as factors of pairs of them (9, 9): 1 on average for one."""
    found = np.kron(*(_along(m) for m in (height, WIDTH)))
    return found * len(found) / np.trace(found)


def _along(m: int) -> NDArray[np.float64]:
    output, filters, inputs = transforms(m)
    weights = (output**2).mean(0) * (inputs**2).sum(1)
    return np.asarray(filters.T @ np.diag(weights) @ filters)


def _scale(largest: float) -> float:
    """What takes numbers to where neither their squares nor sums of those leave the range of float32."""
    if not 0 < largest < np.inf or LOW < largest < HIGH:
        return 1.0
    return 2.0 ** -max(-126, min(frexp(largest)[1], 126))
