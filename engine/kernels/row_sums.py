"""Sums over rows of numbers: over the positions of a plane, where channels come last.

NumPy adds row to row, one after the other: the error of a sum grows with how many there are, and rows of
few numbers take as long as it takes to begin each. So rows are added as many beside each other as make a
long one, and few of these one after the other before their sums are added to others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import even, ranges
from engine.threads import check_stop

Array = NDArray[Any]

ROWS = 64
"""Rows that are added one after the other."""

WIDE = 1 << 11
"""Numbers of a long row, so few that their sum stays in the first-level cache."""

SAMPLE_PART = 1 << 20
"""Numbers of a sample that are added up at a time: their sums, and what is left, are a fraction of them."""


def sums_over_rows(values: Array) -> Array:
    """The sums of values (n, rows, numbers) over their rows, as (n, numbers).

    No sum depends on how many there are beside each sample's own.
    """
    n, rows, numbers = values.shape
    each = even(rows, max(ROWS, SAMPLE_PART // numbers))
    if each < rows:
        parts = ranges(rows, each)
        sums = np.empty_like(values, shape=(n, len(parts), numbers))
        for part, (lo, hi) in enumerate(parts):
            check_stop()
            sums[:, part] = sums_over_rows(values[:, lo:hi])
        return sums_over_rows(sums)
    beside = max(1, min(WIDE // numbers, rows // ROWS))
    cut = rows - rows % (ROWS * beside)
    if not cut:
        return np.add.reduce(values, axis=1)
    wide = values[:, :cut].reshape(n, cut // (ROWS * beside), ROWS, beside * numbers)
    parted = np.add.reduce(wide, axis=2).reshape(n, cut // ROWS, numbers)
    total = sums_over_rows(parted)
    if cut < rows:
        total += sums_over_rows(values[:, cut:])
    return total
