"""Who may hold a connection, and how many of those who may not are held while they read why. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.addresses import Addresses
from app.errors import RateLimited, ServiceError, TooManyConnections
from app.settings import Settings

LEAVING_CONNECTIONS = 64
"""Connections beyond the limit that are held for the moment in which their refusal is read."""

LEAVING_OF_AN_ADDRESS = 8
"""The same of one address, beyond its own limit."""

RETRY_S = 1.0
"""When to try again; when a connection is closed cannot be told."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a connection counts as, until it leaves.

    Attributes:
        refusal: why it is not held; None where it is.
        crowded: so many are refused that it cannot even be held until it has read that.
    """

    among: Addresses
    address: str
    refusal: ServiceError | None = None
    crowded: bool = False

    def leave(self) -> None:
        """The connection was closed."""
        self.among.leave(self.address)


class Places:
    """The connections of one server; those who are only told that they are refused take nobody's place."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.max_connections
        self._most_of_an_address = settings.max_address_connections
        self._held = Addresses()
        self._leaving = Addresses()

    def enter(self, address: str) -> Place:
        """A connection was opened."""
        refusal = self._refusal(address)
        if refusal is None:
            self._held.enter(address)
            return Place(self._held, address)
        self._leaving.enter(address)
        mine = self._leaving.of(address) if self._most_of_an_address else 0
        crowded = self._leaving.total > LEAVING_CONNECTIONS or mine > LEAVING_OF_AN_ADDRESS
        return Place(self._leaving, address, refusal, crowded)

    def _refusal(self, address: str) -> ServiceError | None:
        """How a connection is refused that is one too many."""
        if self._held.total >= self._most:
            return TooManyConnections(retry_after=RETRY_S)
        most = self._most_of_an_address
        if most and self._held.of(address) >= most:
            detail = f"This address holds as many connections as one may, max_address_connections, {most}."
            return RateLimited(detail, retry_after=RETRY_S)
        return None
