"""Copies large enough to stall the event loop, made on threads that yield to it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from app.workers.cpus import available_cpus
from app.workers.turns import come_last
from engine.crew import Crew

OFFLOAD_BYTES = 4 << 20
"""Copying so much takes longer than handing it to a thread and back.

After each array a thread waits for the interpreter's lock, which a busy loop seldom lets go of: a
batch of twenty requests with a mebibyte together is through sooner in the loop.
"""

YIELD_BYTES = 1 << 20
"""After copying so much others have their turn: a batch has many answers to be copied."""

T = TypeVar("T")


async def copying(nbytes: int, function: Callable[[], T]) -> T:
    """Call a function that copies `nbytes` without holding the interpreter's lock.

    In the loop where the system grants no thread: what others then wait for is late, and not lost.
    """
    if nbytes >= OFFLOAD_BYTES:
        elsewhere = _threads.submit(function)
        if elsewhere is not None:
            return await asyncio.wrap_future(elsewhere)
    copied = function()
    if nbytes >= YIELD_BYTES:
        await asyncio.sleep(0)
    return copied


def _yield_to_others() -> None:
    """Make this thread nice; elsewhere than on Linux only whole processes can be."""
    if sys.platform == "linux":
        come_last(threading.get_native_id())


# Half the processors: more copies at once would only wait for each other, and hold the loop up.
_threads = Crew(max(1, available_cpus() // 2), "convoke-copy", _yield_to_others)
