"""How many connections each address holds. Pure."""

from __future__ import annotations

from ipaddress import IPv6Address

HOST_BITS = 64
"""Of an IPv6 address, those that its holder may choose at will (RFC 6177)."""


class Addresses:
    """Counts the connections of each address.

    Args:
        most: that one address may hold; 0 for any number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, int] = {}

    def enter(self, address: str) -> None:
        """A connection was opened; `leave` is to be called for each, refused or not."""
        network = _network(address)
        self._held[network] = self._held.get(network, 0) + 1

    def leave(self, address: str) -> None:
        """It was closed."""
        network = _network(address)
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]

    def beyond(self, address: str) -> int:
        """By how many connections an address is over its limit; 0 or less where it is not."""
        return self._held.get(_network(address), 0) - self._most if self._most else 0


def _network(address: str) -> str:
    """What counts as one address: of IPv6 a network, unless it stands for an address of IPv4."""
    if ":" not in address:
        return address
    parsed = IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> HOST_BITS:x}:"
