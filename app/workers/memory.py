"""Freed memory is kept for the next body or tensor, where the C library is glibc.

By itself it gives blocks of some hundred KiB back to the system as soon as they are freed, and the
next request waits for the kernel to find and clear every page of them anew.
"""

from __future__ import annotations

import ctypes

KEPT_BYTES = 64 << 20
"""Free memory that is kept at most at the end of the heap."""

MAPPED_BYTES = 4 << 20
"""Blocks of so many bytes are not taken from the heap, and given back at once."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Set this process's allocator so (mallopt(3)); another than glibc's is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
