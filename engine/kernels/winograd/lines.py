"""A map's numbers under some tiles, laid channels last with their padding: views of a thread's scratch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Lines:
    """Where numbers of a map go.

    Attributes:
        padded: all of it, channels last.
        inner: the map's numbers in it, with their axes in the order of the map; they may fill it.
        together: as many numbers in the order of the map.
        channels: the axis of the map that counts them.
    """

    padded: Array
    inner: Array
    together: Array
    channels: int

    def load(self, numbers: Array) -> None:
        """Lay numbers of a map out."""
        if self.inner.size < self.padded.size:
            self.padded.fill(0)
        if numbers.strides[self.channels] != numbers.itemsize:
            # Their planes may lie apart by a power of two, and then share the lines of the cache.
            np.copyto(self.together, numbers)
            numbers = self.together
        np.copyto(self.inner, numbers)
