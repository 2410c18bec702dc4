"""Large answers that callers have not taken yet, and what of them counts for others. Pure."""

from __future__ import annotations


class Untaken:
    """Bytes of answers on their way, by caller.

    Who asks for a lot and reads nothing holds memory until the connection is ended. Of each caller's
    answers no more than `share` counts for others; whoever has as many is to take them first.

    Attributes:
        beyond: bytes that do not count for others.
    """

    def __init__(self, share: int) -> None:
        self._share = share
        self._of: dict[str, int] = {}
        self.beyond = 0

    def of(self, client: str) -> int:
        """A caller's bytes."""
        return self._of.get(client, 0)

    def full(self, client: str) -> bool:
        """Whether a caller has to take some first."""
        return self.of(client) > self._share

    def add(self, client: str, size: int) -> None:
        """An answer is on its way; of negative size, it has been taken or given up."""
        before = self.of(client)
        after = before + size
        self.beyond += max(0, after - self._share) - max(0, before - self._share)
        if after:
            self._of[client] = after
        else:
            del self._of[client]
