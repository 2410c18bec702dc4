"""Which numbers Winograd's tiles take as exactly as promised: 8 times a plain sum's largest error at most.

Limits are worked out for each sample, or for each request where its samples are added: the largest number
that tiles may have, or 0 where a plain sum is to do it all. They come from how even the numbers are (see
`evenness`), by thresholds that searching many kinds of numbers gave (docs/performance.md), and from the
digits of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.kernels.correlation import Correlation
from engine.kernels.digits import Taps, short_channels, short_correlation, short_sums
from engine.kernels.evenness import LEAST_MEAN, WEIGHTS, Filters, Means, Sizes, alternates, sizes
from engine.kernels.tiling import Tiling, tilings
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

LOOKING = 16
"""Work that takes as long as looking at one number."""


class _Sample(NamedTuple):
    """What is seen of a sample of x or dy: see `sizes`, `alternates` and `short_channels`."""

    means: Means
    squares: Means
    alternates: bool
    short: bool


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
    # Where numbers alternate they stay 0, and leave the sample to a plain sum.
    means, squares = np.zeros((2, len(x), c.channels))

    def look(n: int | None) -> None:
        if n is None:
            found = Filters.of(w)
            filters.append((found, Taps.of(w, found.means)))
        elif not alternates(x[n, 0]):
            means[n], squares[n] = sizes(x[n, 0])

    work = LOOKING * (x.size + min(w.size, 2 * WEIGHTS))
    for_each(look, ((n,) for n in (None, *range(len(x)))), work)
    own, taps = filters[0]
    short = short_sums(x[:, 0], means, taps)
    return [
        Choice(None) if exact else _choice(c, Sizes.together(*found), own)
        for *found, exact in zip(means, squares, short, strict=True)
    ]


def _choice(c: Correlation, own: Sizes, filters: Filters) -> Choice:
    """What does a sample of such sizes."""
    if _tiny(own.mean, filters.mean):
        return Choice(None)
    flat = filters.flat()
    for plan in tilings(c):
        more = filters.more(plan.height)
        if flat < LEAST_FLAT[plan.height] or (plan.height == 4 and more > MOST_ALIKE):
            continue
        spread, most = filters.spread * more, _most_spread(plan)
        if own.spread * spread < most:
            count = plan.filters * plan.depth.kernel * c.channels
            least = LEAST_LEFT * c.taps * c.channels * own.mean**2 * filters.mean**2
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
    both = x, dy
    found: list[dict[int, _Sample]] = [{}, {}]

    def look(number: int, n: int) -> None:
        a = both[number][n, 0]
        found[number][n] = _Sample(*sizes(a), alternates(a), short_channels(a))

    samples = [n for span in spans for n in range(span.start, span.stop)]
    for_each(look, product((0, 1), samples), LOOKING * (x.size + dy.size))

    def limit(span: slice) -> Limits:
        sides = [[own[n] for n in range(span.start, span.stop)] for own in found]
        left, right = map(_sizes_of, sides)
        spread = left.spread * right.spread
        if not spread < MOST_JOINT_SPREAD:
            return 0, 0
        means = (np.stack([a.means for a in side]) for side in sides)
        if short_correlation(x[span, 0], dy[span, 0], *means):
            return 0, 0
        if _tiny(left.mean, right.mean) or any(a.alternates for a in chain(*sides)):
            return 0, 0
        # Of some channels beside others, a plain sum makes no error either.
        if all(any(a.short for a in side) for side in sides):
            return 0, 0
        more, count = (MOST_JOINT_SPREAD / spread) ** 0.5, len(sides[0]) * c.places
        return left.largest(left.spread * more, count), right.largest(right.spread * more, count)

    return [limit(span) if span.start < span.stop else (0, 0) for span in spans]


def _sizes_of(samples: Sequence[_Sample]) -> Sizes:
    """Those of a request, from those of its samples."""
    means, squares = np.zeros((2, *samples[0].means.shape))
    for a in samples:
        means += a.means
        squares += a.squares
    return Sizes.each(means / len(samples), squares / len(samples))
