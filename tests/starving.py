"""A system that grants no more threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def granting(count: int = 0) -> Iterator[None]:
    """Let only so many threads be started, as where a limit is reached."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def scarce(thread: threading.Thread) -> None:
        if len(started) >= count:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    with pytest.MonkeyPatch.context() as starved:
        starved.setattr(threading.Thread, "start", scarce)
        yield
