"""Copies large enough to stall the event loop, made on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

OFFLOAD_BYTES = 1 << 20
"""Copying so much takes longer than handing it to a thread and back."""

T = TypeVar("T")


async def copying(nbytes: int, function: Callable[[], T]) -> T:
    """Call a function that copies `nbytes` without holding the interpreter's lock."""
    if nbytes < OFFLOAD_BYTES:
        return function()
    return await asyncio.get_running_loop().run_in_executor(None, function)
