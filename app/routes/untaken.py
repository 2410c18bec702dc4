"""Large answers that callers have asked for and not taken yet. Pure: bytes and callers' names."""

from __future__ import annotations

MOST, SHARE = 2, 4
"""The parts of what may be held that a caller's large answers may come to, and count for others."""


class Untaken:
    """Bytes of answers that are promised, and of those on their way, by caller.

    Who asks for a lot and reads nothing holds memory until the connection is ended, which is not to keep
    others out. So a caller's answers are bounded from the moment in which they are asked for, and count for
    others up to a share only.

    Args:
        capacity: bytes that may be held for all.

    Attributes:
        beyond: bytes on their way that do not count for others.
    """

    def __init__(self, capacity: int) -> None:
        self._most, self._share = capacity // MOST, capacity // SHARE
        self._asked: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self.beyond = 0

    def full(self, caller: str, size: int) -> bool:
        """Whether a caller would have asked for too much with so much more; one answer is not."""
        asked = self._asked.get(caller, 0)
        return asked > 0 and asked + size > self._most

    def promise(self, caller: str, size: int) -> None:
        """An answer of about this size has been asked for; of negative size, it is there or given up."""
        _add(self._asked, caller, size)

    def send(self, caller: str, size: int) -> None:
        """An answer is on its way; of negative size, it has been taken or given up."""
        _add(self._asked, caller, size)
        before, after = _add(self._sent, caller, size)
        self.beyond += max(0, after - self._share) - max(0, before - self._share)


def _add(to: dict[str, int], caller: str, size: int) -> tuple[int, int]:
    """Add to a caller's bytes, of which none are kept where there are none; before and after."""
    before = to.get(caller, 0)
    after = before + size
    if after:
        to[caller] = after
    else:
        to.pop(caller, None)
    return before, after
