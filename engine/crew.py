"""Threads that are started as work comes, as far as the system grants any."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Work = tuple[Future[Any], Callable[[], Any]]


class Crew:
    """A pool that says so where it has nobody for work.

    One of the standard library's takes the work first and asks for a thread then; where none is granted, it
    fails and keeps the work, for whoever of its threads gets free later.

    Args:
        size: most threads.
        name: what they are called.
        initializer: called in each of them first.
        rest: called by each thread that has had no work for `linger_s` seconds.
        linger_s: see `rest`.
    """

    def __init__(
        self,
        size: int,
        name: str,
        initializer: Callable[[], None] | None = None,
        rest: Callable[[], None] | None = None,
        linger_s: float = 0.0,
    ) -> None:
        self._size = size
        self._name = name
        self._initializer = initializer
        self._rest = rest
        self._linger_s = linger_s
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._unfinished = self._at_work = 0

    @property
    def working(self) -> bool:
        """Whether a thread has begun work that is not done."""
        return self._at_work > 0

    def submit(self, function: Callable[[], T]) -> Future[T] | None:
        """Have a function called by a thread of the crew; None where there is none and none is granted.

        To be called by one thread at a time.
        """
        if self._unfinished >= len(self._threads) < self._size:
            self._start()
        if not self._threads:
            return None
        called: Future[T] = Future()
        with self._lock:
            self._unfinished += 1
        self._work.put((called, function))
        return called

    def close(self) -> None:
        """Wait for what was submitted, and end the threads."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        # No thread is to be waited for at the end of the program: who submits work waits for it.
        thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        self._threads.append(thread)

    def _serve(self) -> None:
        if self._initializer is not None:
            self._initializer()
        work = self._work.get()  # that which it was started for, however long it takes to be there
        while work is not None:
            with self._lock:
                self._at_work += 1
            _call(*work)
            del work
            with self._lock:
                self._at_work -= 1
                self._unfinished -= 1
            work = self._next()

    def _next(self) -> _Work | None:
        if self._rest is not None:
            try:
                return self._work.get(timeout=self._linger_s)
            except Empty:
                self._rest()
        return self._work.get()


def _call(called: Future[T], function: Callable[[], T]) -> None:
    if not called.set_running_or_notify_cancel():
        return
    try:
        called.set_result(function())
    except BaseException as error:  # noqa: BLE001 - it is for whoever asks for the result
        called.set_exception(error)
        # The error's traceback leads here, from where nothing may lead back to it.
        del called
