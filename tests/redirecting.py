"""Other places for what this process writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def redirected(fd: int, to: int) -> Iterator[None]:
    """Have a descriptor stand for what another does."""
    before = os.dup(fd)
    os.dup2(to, fd)
    try:
        yield
    finally:
        os.dup2(before, fd)
        os.close(before)


@contextmanager
def piped(fd: int) -> Iterator[tuple[int, int]]:
    """A descriptor stands for a pipe, of which both ends are given."""
    read, write = os.pipe()
    try:
        with redirected(fd, write):
            yield read, write
    finally:
        os.close(read)
        os.close(write)


def fill(pipe: int) -> None:
    """Leave no room in a pipe, whose writers wait."""
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(1 << 12))
    os.set_blocking(pipe, True)
