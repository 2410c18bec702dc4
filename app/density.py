"""How close to each other the times may lie for which places in a queue are promised.

Those who come back are let in where places fall free, over the seconds, and where the queue can take
them at once, over parts of a second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SLOTS_PER_S = 20
"""Parts of a second, over which promises are spread."""

PROMISED = 0.5
"""Part of the places falling free in a second that is promised at most."""

AT_ONCE = 1 / 3
"""Part of the places held for promises that are promised for one part of a second."""

LEAST_OBEDIENCE = 0.01
"""Where nobody comes back, so much more is promised than there is."""


class Density(NamedTuple):
    """The most promises in any stretch of time.

    Attributes:
        in_second, in_slot: for a second, and for a part of one.
        at_once: for a part of a second and those around it that count as one with it.
        beside: how many these are, on either side.
        apart: seconds, the promise's own and those before it, of which no other may have one; 0 where
            several may share a second.
    """

    in_second: float
    in_slot: float
    at_once: float
    beside: int
    apart: int


def density(per_s: float, room: float, obedience: float, longest_s: int) -> Density:
    """How dense promises may be.

    Args:
        per_s: places that fall free in a second.
        room: that can be held for promises.
        obedience: part of the promises that are called in.
        longest_s: the latest that anybody is told to come, in seconds.
    """
    over = 1 / max(obedience, LEAST_OBEDIENCE)
    in_second = PROMISED * per_s * over
    # Also in the time in which one is promised, where that is longer than a part of a second.
    at_once = max(room * over, 1.0)
    in_slot = max(min(in_second / SLOTS_PER_S, at_once), AT_ONCE * at_once, 1.0)
    # Where fewer fall free than a second has parts, so many of these on either side count as well.
    beside = min(math.ceil(SLOTS_PER_S / in_second), SLOTS_PER_S) - 1
    apart = min(math.ceil(1 / in_second), longest_s) if in_second < 1 else 0
    return Density(in_second, in_slot, at_once, beside, apart)
