"""Who sends a request, to be known again after a refusal."""

from __future__ import annotations

from typing import NamedTuple

Key = str | int
"""Of a promise: its visitor's, or below 0 where that visitor may come over any connection.

Promises are entries of dictionaries and no objects of their own: there are thousands, and Python would look
through them again and again for circles.
"""


class Visitor(NamedTuple):
    """Who sends a request.

    Attributes:
        name: that the client gave the request; empty where it gave none.
        connection: a number of its own for each connection; 0 where it is not known.
        address: of the client.
    """

    name: str = ""
    connection: int = 0
    address: str = ""

    @property
    def key(self) -> Key:
        """What it is known by; 0 where it cannot be told from others."""
        return f"{self.address} {self.name}" if self.name else self.connection


NOBODY = Visitor()
"""Somebody who cannot be told from others."""
