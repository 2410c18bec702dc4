"""The memory that OpenBLAS copies operands to, with pages behind it before its kernels read ahead in it.

Each product that runs takes a buffer of some 32 MB, of which most pages are never written, and gives it
back. Kernels fetch what lies behind the operand that they are at, so behind the last one too, where there
is no page yet. A processor keeps no note of that and looks it up each time: until a larger product has been
in the same buffer, layers of smaller ones took up to three times as long (`python -m benchmarks.fresh`).
That is what workers would be left with that only ever compute small layers.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

TOUCHED_BYTES = 2 << 20
"""Of a buffer, written to once. Half a mebibyte was enough for all sizes tried; the first operand of a
product takes 1.2 MB at most where kernels are Haswell's."""

MOST_BUFFERS = 8
"""That are touched, 16 MiB in all. OpenBLAS has room for twice the threads that it is built for."""

KNOWN = "OpenBLAS 0.3."
"""How the configuration of those begins whose two functions are known to be called like this."""


class Panels:
    """The buffers of one OpenBLAS.

    Args:
        take: gives the address of a buffer that nobody uses; 0 where there is none.
        give_back: ends its use.
    """

    def __init__(self, take: Callable[[], int], give_back: Callable[[int], object]) -> None:
        self._take = take
        self._give_back = give_back
        self._touched: set[int] = set()

    def prepare(self, callers: int) -> None:
        """Have pages behind as many buffers as callers may multiply in at once, up to `MOST_BUFFERS`.

        There is nothing to be done where address space is bounded: OpenBLAS ends the process where it finds
        none, and who makes no product should not ask for any.
        """
        wanted = min(callers, MOST_BUFFERS)
        while len(self._touched) < wanted and not _bounded() and self._touch():
            pass

    def _touch(self) -> bool:
        """Have pages behind one buffer more; False where there is none."""
        held: list[int] = []
        try:
            while (address := self._take()) in self._touched:
                held.append(address)
            if not address:
                return False
            held.append(address)
            ctypes.memset(address, 0, TOUCHED_BYTES)
            self._touched.add(address)
            return True
        finally:
            for each in held:
                self._give_back(each)


def _bounded() -> bool:
    """Whether this process may have so much address space only."""
    if sys.platform == "win32":
        return False
    import resource  # not there elsewhere

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def panels_of(library: ctypes.CDLL, configuration: str) -> Panels | None:
    """Those of a library; None where it is not known how to ask for them.

    Args:
        configuration: what the library says of itself.
    """
    if not configuration.startswith(KNOWN):
        return None
    try:
        take, give_back = library.blas_memory_alloc, library.blas_memory_free
    except AttributeError:
        return None
    take.restype, take.argtypes = ctypes.c_void_p, [ctypes.c_int]
    give_back.restype, give_back.argtypes = None, [ctypes.c_void_p]
    return Panels(lambda: take(0) or 0, give_back)
