"""Views of a thread's scratch, made once for each shape and kept.

Making a view takes half a microsecond, in which no other thread may run Python. A block has dozens of
them and lasts some hundred microseconds, so that two threads would wait for each other as long as they
work. Most blocks have one shape, and a thread's scratch stays where it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, TypeVarTuple, Unpack

from engine.arena import beside_scratch

MOST = 64
"""Results of one function that a thread keeps; for one more, all are given up."""

Keys = TypeVarTuple("Keys")
Made = TypeVar("Made")


class _Found(threading.local):
    def __init__(self) -> None:
        self.by_keys: dict[object, object] = {}


class kept(Generic[*Keys, Made]):  # noqa: N801
    """A function, of whose results each thread keeps its own, by its arguments.

    They hold no memory but the thread's scratch and what the plan fixes: what did not find room in the
    scratch is not kept.
    """

    def __init__(self, make: Callable[[Unpack[Keys]], Made]) -> None:
        self.__doc__ = make.__doc__
        self._make = make
        self._found = _Found()

    def __call__(self, *keys: *Keys) -> Made:
        """What the function makes of these arguments."""
        found: Made | None = self._found.by_keys.get(keys)  # type: ignore[assignment]
        if found is None:
            before = beside_scratch()
            found = self._make(*keys)
            if beside_scratch() == before:
                if len(self._found.by_keys) == MOST:
                    self.cache_clear()
                self._found.by_keys[keys] = found
        return found

    def cache_clear(self) -> None:
        """Give up what this thread keeps."""
        self._found.by_keys.clear()
