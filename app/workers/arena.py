"""Memory that server and worker share: anonymous, so that nothing of it can be left behind.

An arena is a file without a name (`memfd_create`, else an unlinked temporary file), mapped by both
sides. It lives as long as somebody has it open; when both are killed, it is gone.

    byte 0              stop flag: 1 asks the worker to end the computation
    byte 64 and on      tensors, each at a multiple of 64
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from math import prod
from time import monotonic
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.workers.memory import KEEP_S, KEPT_ARENA_BYTES

ALIGNMENT = 64
"""Of tensors, in bytes: a cache line, and the widest vector register."""

PAGE = mmap.PAGESIZE


class Region(NamedTuple):
    """Where one tensor lies in an arena. Plain, so that it can be sent as it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, fields: Sequence[Any]) -> Self:
        """One that was sent: msgpack and JSON make lists of tuples."""
        name, dtype, shape, offset = fields
        return cls(name, dtype, tuple(shape), offset)


def aligned(offset: int) -> int:
    """The first place for a tensor from `offset` on."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def place(
    tensors: Sequence[tuple[str, str, Sequence[int]]], offset: int = ALIGNMENT
) -> tuple[list[Region], int]:
    """Lay tensors (name, NumPy's dtype string, shape) out from `offset` on.

    Returns:
        Their regions, and the offset behind them.
    """
    regions = []
    for name, dtype, shape in tensors:
        regions.append(Region(name, dtype, tuple(shape), offset))
        size = np.dtype(dtype).itemsize * prod(shape)
        offset = aligned(offset + size)
    return regions, offset


def open_file(label: str) -> int:
    """A descriptor of an empty file without a name; the label is shown in lists of mappings."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(label, os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _grow(fd: int, size: int) -> None:
    """Give a file so many bytes, more than it has; raises OSError where there is no room for them."""
    os.ftruncate(fd, size)
    if not hasattr(os, "memfd_create") and hasattr(os, "posix_fallocate"):
        # Else they are only promised, and writing to one that a full disk has not ends us (SIGBUS).
        os.posix_fallocate(fd, 0, size)


class MappedFile:
    """One side's view of an arena.

    Views keep the memory mapped that they look at, so a mapping is replaced, never closed.

    Args:
        protection: of the memory, see mmap(2).

    Attributes:
        size: bytes that are mapped. address: of the first.
    """

    def __init__(self, fd: int, protection: int = mmap.PROT_READ | mmap.PROT_WRITE) -> None:
        self.fd = fd
        self.size = 0
        self.address = 0
        self._protection = protection
        self._memory: mmap.mmap | None = None

    def remap(self, size: int) -> None:
        """See the first `size` bytes of the file, which has as many."""
        if size != self.size:
            self._memory = mmap.mmap(self.fd, size, prot=self._protection)
            whole = np.frombuffer(self._memory, np.uint8)
            self.size, self.address = size, whole.__array_interface__["data"][0]

    def view(self, region: Region, start: int = 0) -> NDArray[Any]:
        """The tensor in a region that is counted from `start`, writable where the memory is."""
        return np.ndarray(region.shape, region.dtype, self._memory, start + region.offset)

    def views(self, regions: Iterable[Region], start: int = 0) -> dict[str, NDArray[Any]]:
        """The tensors in regions that are counted from `start`, by name."""
        return {region.name: self.view(region, start) for region in regions}

    @property
    def stop(self) -> bool:
        """The stop flag."""
        return self._memory is not None and self._memory[0] != 0

    @stop.setter
    def stop(self, value: bool) -> None:
        if self._memory is not None:
            self._memory[0] = value


class Arena(MappedFile):
    """The server's side, which decides on the size.

    Args:
        capacity: most bytes that it may ever have.
        keep: bytes that it keeps when it is not used.
        label: what it is called where memory is looked at.
        clock: tells the time in seconds.

    Attributes:
        needed: when more than `keep` was, the last time.
    """

    def __init__(
        self,
        capacity: int,
        keep: int,
        label: str = "convoke",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(open_file(label))
        self.capacity = capacity
        self.keep = min(-(-keep // PAGE) * PAGE, capacity)
        self._clock = clock
        self.needed = clock()
        self._seen: list[weakref.ref[NDArray[Any]]] = []

    def watch(self, views: Iterable[NDArray[Any]]) -> None:
        """Be `used` for as long as anybody has one of these views, or a part of one."""
        self._seen = [weakref.ref(view) for view in views]

    @property
    def used(self) -> bool:
        """Whether anybody has one of the views that are watched."""
        return any(view() is not None for view in self._seen)

    @property
    def large(self) -> bool:
        """Whether it has more than it keeps."""
        return self.size > self.keep

    @property
    def waits(self) -> bool:
        """Whether it is large, and not too large to stay so for a while."""
        return self.keep < self.size <= KEPT_ARENA_BYTES

    def fit(self, size: int) -> None:
        """Have room for `size` bytes: grow if need be, shrink if `keep` will do and it waits no longer.

        Raises:
            MemoryError: it is more than the capacity, or than the system grants.
        """
        if size > self.capacity:
            raise MemoryError(f"an arena of {self.capacity} bytes cannot take {size}")
        now = self._clock()
        if size > self.keep:
            self.needed = now
        else:
            self.tidy(KEEP_S)
        if size > self.size:
            # In powers of two, so that a row of growing batches maps the file a few times only.
            larger = min(1 << max(size - 1, PAGE - 1).bit_length(), self.capacity)
            try:
                _grow(self.fd, larger)
                self.remap(larger)
            except OSError as error:
                os.ftruncate(self.fd, self.size)
                raise MemoryError(f"no {larger} bytes for an arena: {error}") from error

    def tidy(self, after: float) -> None:
        """Shrink, unless it is to be kept until it was not needed for so many seconds."""
        if not self.waits or self._clock() - self.needed > after:
            self.shrink()

    def shrink(self) -> None:
        """Give back what lies beyond `keep`, if it can be and nobody has a view that is watched."""
        if self.large and not self.used:
            # With no address space left for the smaller mapping, the larger one is kept, and the file.
            with contextlib.suppress(OSError):
                self.remap(self.keep)
                os.ftruncate(self.fd, self.keep)

    def close(self) -> None:
        """Close the file; views that are left stay valid."""
        os.close(self.fd)
        self._memory = None
