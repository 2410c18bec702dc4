"""Defaults of the limits on memory: so much, and at most a part of the memory that there is.

Limits that are right on a large machine let a small container be killed for want of memory, by nothing
but requests within them. So each has a share of what is left over by processes that do nothing. With two
workers all shares come to less than the whole: a quarter is held, a worker may have two arenas of a 24th,
three of as much and 64 MiB at most, and a workspace of a sixteenth, and two readers of JSON have a
sixteenth each. A body has half of what inputs and outputs have together, so that most that are let in fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from app.setting import MiB
from app.workers.cpus import available_cpus
from app.workers.ram import available_memory

SERVER_BYTES, WORKER_BYTES = 128 * MiB, 32 * MiB
"""What the server with its readers of JSON takes when it does nothing, and each of its workers."""

LEAST_TO_SHARE = 4
"""The part of all memory that is shared out at least, however many workers there are."""

LEAST = 64
"""The part of a limit that it has in the smallest memory; less would refuse what layers need at all."""


def share(most: int, parts: int) -> Callable[[], int]:
    """A default of `most`, and no more than one of `parts` of the memory there is to share."""

    def default() -> int:
        return max(min(most, to_share() // parts), most // LEAST)

    return default


@cache
def to_share() -> int:
    """The bytes that are left for requests, in whole mebibytes; found in a dozen files, and so once."""
    memory = available_memory()
    idle = SERVER_BYTES + (1 + available_cpus()) * WORKER_BYTES
    return max(memory - idle, memory // LEAST_TO_SHARE) // MiB * MiB
