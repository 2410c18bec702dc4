"""Threads that are started as work comes, as far as the system grants any."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Crew:
    """A pool that says so where it has nobody for work.

    Args:
        size: most threads.
        name: what they are called, with a number each.
        initializer: called in each of them first.
    """

    def __init__(self, size: int, name: str, initializer: Callable[[], None] | None = None) -> None:
        self._make = partial(ThreadPoolExecutor, size, name, initializer)
        self._pool = self._make()

    def submit(self, function: Callable[[], T]) -> Future[T] | None:
        """Have a function called by one of the threads; None where it is not, for want of threads."""
        called: Future[T] = Future()
        try:
            self._pool.submit(_call, function, [called])
        except RuntimeError:
            # The pool holds on to work that it has nobody for: its threads end with what they find there.
            self._pool.shutdown(wait=False)
            self._pool = self._make()
            # One that has just got free may have taken this, which then is not to be done twice.
            return None if called.cancel() else called
        return called

    def close(self) -> None:
        """Wait for what was submitted, and end the threads."""
        self._pool.shutdown(wait=True)


def _call(function: Callable[[], T], handed: list[Future[T]]) -> None:
    called = handed.pop()
    if not called.set_running_or_notify_cancel():
        return
    try:
        called.set_result(function())
    except BaseException as error:  # noqa: BLE001 - it is for whoever asks for the result
        called.set_exception(error)
        # The error's traceback leads here and to the pool, from where nothing may lead back to it.
        del called
