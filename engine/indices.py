"""The one check that needs data: positions must lie inside their plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidIndices, fail


def check_indices(indices: NDArray[Any], plane: int) -> None:
    """Raise InvalidIndices unless every value is -1 (no maximum) or a position below `plane`."""
    if indices.size == 0:
        return
    # Without its sign a negative number is a large one: one look for both ends.
    if indices.dtype == np.int64 and indices.view(np.uint64).max() < plane:
        return
    if indices.min() >= -1 and indices.max() < plane:
        return
    first = int(np.argmax((indices < -1) | (indices >= plane)))
    place = tuple(int(i) for i in np.unravel_index(first, indices.shape))
    expected = f"-1 (none) or 0 to {plane - 1}"
    got = int(indices[place])
    raise fail(InvalidIndices, ("indices", "data", *place), "outside its plane", expected, got)
