"""Which numbers Winograd's tiles take as exactly as promised: 8 times a plain sum's largest error at most.

Limits are worked out for each sample, or for each request where its samples are added: the largest number
that tiles may have, or 0 where a plain sum is to do it all. They come from how even the numbers are (see
`evenness`), by thresholds that searching many kinds of numbers gave (docs/precision.md), and from the
digits of products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels.correlation import Correlation
from engine.kernels.winograd.digits import Taps, short_channels, short_correlation, short_sums
from engine.kernels.winograd.evenness import (
    LEAST_MEAN,
    WEIGHTS,
    Filters,
    Means,
    Sizes,
    alternates,
    sizes,
)
from engine.kernels.winograd.tiling import Tiling, tilings
from engine.threads import for_each

Array = NDArray[Any]
Limits = tuple[float, float]
"""The largest |x| and |dy| that tiles may have."""

MOST_SPREAD = 12.0
"""The spread of a sample times that of the filters, up to MANY channels; with more, it falls as they grow.

BLAS adds up a plain sum in parts, so that its error grows less with the channels than that of tiles.
"""

MANY = 128

MOST_SPREAD_HIGH = 4.0
"""The same for tiles of 4 by 4, whose error is about twice as large."""

MOST_ALIKE = 1.25
"""How much more than of unlike taps tiles of 4 by 4 may add up of a filter: smooth filters make errors of 8
times a plain sum's with any inputs."""

LEAST_FLAT = {2: 0.2, 4: 0.5}
"""How much of a constant filters must leave, beside those of unlike taps, for each height of tiles: where
they take it away, a plain sum stays small all the way."""

LEAST_LEFT = 2.0**-36
"""The mean square of results, beside that of as many products of numbers that have nothing in common, from
which on they are more than what rounding leaves of sums that come to nothing."""

MOST_GROWTH = {2: 3.0, 4: 3.4}
"""How much larger than the results sums at the points may be, by mean squares, for each height of tiles.

Normal numbers make 1.0 and 2.6, at most 2.8. Where maps repeat themselves, or filters take away what they
have in common, the last transform takes sums from each other again that a plain sum never makes.
"""

MOST_JOINT_SPREAD = 14.0
"""The spread of a request's x times that of its dy."""

LEAST_SIDE = 6
"""Rows, and columns, of a map from which its tiles are full enough for the gradient of the weight."""

TOGETHER = 1 << 20
"""Numbers some of whose rows are looked at together."""

LOOKING = 32
"""Work that takes as long as looking at one number."""


class _Seen(NamedTuple):
    """What is seen of N samples with K channels: `sizes` (N, K), `alternates` and `short_channels` (N)."""

    means: Means
    squares: Means
    alternates: NDArray[np.bool_]
    short: NDArray[np.bool_]

    @classmethod
    def of_none(cls, samples: int, channels: int) -> _Seen:
        """Places for all of it."""
        means, squares = np.empty((2, samples, channels))
        return cls(means, squares, *np.empty((2, samples), np.bool_))

    def of(self, some: slice) -> _Seen:
        """That of some samples."""
        return _Seen(self.means[some], self.squares[some], self.alternates[some], self.short[some])


class Choice(NamedTuple):
    """What does a sample: tiles, or, without them, a plain sum.

    Attributes:
        limit: the largest |x| that tiles may have.
        least: the least mean square of results that are more than rounding.
    """

    plan: Tiling | None
    limit: float = np.inf
    least: float = 0.0


def sample_choices(c: Correlation, x: Array, w: Array) -> list[Choice]:
    """What does each sample of x (N, 1, C, *S) under w (O, C, K, 9): the fastest that keeps the promise."""
    filters: list[tuple[Filters, Taps]] = []
    means, squares = np.empty((2, len(x), c.channels))

    def look_at_filters() -> None:
        found = Filters.of(w)
        filters.append((found, Taps.of(w, found.means)))

    def look(lo: int, hi: int) -> None:
        some = x[lo:hi, 0]
        means[lo:hi], squares[lo:hi] = sizes(some)
        # Numbers that alternate are as good as none, and leave the sample to a plain sum.
        means[lo:hi][alternates(some)] = 0

    looks = [look_at_filters, *(partial(look, *part) for part in _parts(x, [(0, len(x))]))]
    work = LOOKING * (x.size + min(w.size, 2 * WEIGHTS))
    for_each(lambda each: each(), ((each,) for each in looks), work)
    own, taps = filters[0]
    short = short_sums(x[:, 0], means, taps).tolist()
    plans = list(_plans(c, own))
    return [
        Choice(None) if exact else _choice(c, sample, own.mean, plans)
        for sample, exact in zip(Sizes.together(means, squares), short, strict=True)
    ]


def _plans(c: Correlation, filters: Filters) -> Iterator[tuple[Tiling, float]]:
    """The tiles that filters allow, the fastest first, and the spread of the filters under each."""
    flat = filters.flat()
    for plan in tilings(c):
        more = filters.more(plan.height)
        if not (flat < LEAST_FLAT[plan.height] or (plan.height == 4 and more > MOST_ALIKE)):
            yield plan, filters.spread * more


def _choice(
    c: Correlation, own: Sizes, mean: float, plans: Sequence[tuple[Tiling, float]]
) -> Choice:
    """What does a sample of such sizes, under filters of such a mean that allow such plans."""
    if not _tiny(own.mean, mean):
        for plan, spread in plans:
            most = _most_spread(plan)
            if own.spread * spread < most:
                count = plan.filters * plan.depth.kernel * c.channels
                least = LEAST_LEFT * c.taps * c.channels * own.mean**2 * mean**2
                return Choice(plan, own.largest(most / spread, count), least)
    return Choice(None)


def _tiny(left: float, right: float) -> bool:
    """True if transforms of numbers of such means would lose digits to underflow."""
    return min(left, right, left * right) < LEAST_MEAN


def _most_spread(plan: Tiling) -> float:
    """The spread of a sample times that of the filters up to which tiles keep the promise."""
    if plan.height == 4:
        return MOST_SPREAD_HIGH
    return MOST_SPREAD * min(1, MANY / (plan.c.channels * plan.depth.kernel))


def request_limits(c: Correlation, x: Array, dy: Array, spans: Sequence[slice]) -> list[Limits]:
    """The largest |x| and |dy| for each request's samples of x (N, 1, C, H, W) and dy (N, 1, O, *P)."""
    if min(c.positions) < LEAST_SIDE:
        return [(0, 0)] * len(spans)
    both = [(a[:, 0], _Seen.of_none(len(a), a.shape[2])) for a in (x, dy)]
    parts = [(*side, *part) for side in both for part in _parts(side[0], _runs(spans))]
    for_each(_look, parts, LOOKING * (x.size + dy.size))

    def limit(span: slice) -> Limits:
        sides = [seen.of(span) for _, seen in both]
        left, right = (Sizes.each(a.means.mean(0), a.squares.mean(0)) for a in sides)
        spread = left.spread * right.spread
        if not spread < MOST_JOINT_SPREAD:
            return 0, 0
        if short_correlation(x[span, 0], dy[span, 0], *(a.means for a in sides)):
            return 0, 0
        if _tiny(left.mean, right.mean) or any(a.alternates.any() for a in sides):
            return 0, 0
        # Of some channels beside others, a plain sum makes no error either.
        if all(a.short.any() for a in sides):
            return 0, 0
        more, count = (MOST_JOINT_SPREAD / spread) ** 0.5, len(sides[0].means) * c.places
        return left.largest(left.spread * more, count), right.largest(right.spread * more, count)

    return [limit(span) if span.start < span.stop else (0, 0) for span in spans]


def _look(a: Array, seen: _Seen, lo: int, hi: int) -> None:
    """See some samples of a (N, K, ..., H, W)."""
    some, own = a[lo:hi], seen.of(slice(lo, hi))
    own.means[:], own.squares[:] = sizes(some)
    own.alternates[:], own.short[:] = alternates(some), short_channels(some)


def _runs(spans: Sequence[slice]) -> list[tuple[int, int]]:
    """The samples of all requests, those together that lie side by side."""
    found: list[tuple[int, int]] = []
    for span in spans:
        first = found.pop()[0] if found and found[-1][1] == span.start else span.start
        found.append((first, span.stop))
    return found


def _parts(a: Array, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs of samples of a, cut to as many as are looked at together."""
    each = max(1, TOGETHER // max(1, prod(a.shape[1:])))
    for start, stop in runs:
        yield from ((start + lo, start + hi) for lo, hi in ranges(stop - start, each))
