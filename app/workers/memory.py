"""Freed memory is kept for the next body or tensor, where the C library is glibc.

By itself it gives blocks of some hundred KiB back to the system as soon as they are freed, and the
next request waits for the kernel to find and clear every page of them anew.
"""

from __future__ import annotations

import ctypes

KEEP_S = 10.0
"""For so long much memory is kept that is not used: who asks for large work now and then need not wait for
its pages, which takes a third of a large task."""

KEPT_ARENA_BYTES = 64 << 20
"""The largest arena of a worker that is kept so; larger ones are given back at once."""

LARGE_BYTES = 4 << 20
"""What a process holds of bodies when it has much memory to give back."""

KEPT_BYTES = 128 << 20
"""Free memory that a process keeps at most at the end of its heap: whole large bodies, and answers."""

MAPPED_BYTES = 32 << 20
"""Blocks of so many bytes are not taken from the heap, and given back at once; glibc grants no more."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Set this process's allocator so (mallopt(3)); another than glibc's is left as it is.

    For a process that calls `give_back` some time after there were large blocks. Its threads share one
    heap: what one thread keeps, another would have to ask for anew.
    """
    kept = (_M_TRIM_THRESHOLD, KEPT_BYTES), (_M_MMAP_THRESHOLD, MAPPED_BYTES)
    for option in ((_M_ARENA_MAX, 1), *kept):
        _call("mallopt", *option)


def give_back() -> None:
    """Give all free memory back (malloc_trim(3)), which takes a millisecond or two for 100 MiB."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library; nothing where it has none of that name."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
