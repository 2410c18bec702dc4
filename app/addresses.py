"""Addresses that have one holder, and how many connections each has. Pure."""

from __future__ import annotations

from ipaddress import IPv6Address

HOST_BITS = 64
"""Of an IPv6 address, those that its holder may choose at will (RFC 6177)."""


class Addresses:
    """Counts connections, all together and those of each address.

    Attributes:
        total: of all addresses.
    """

    def __init__(self) -> None:
        self.total = 0
        self._held: dict[str, int] = {}

    def enter(self, address: str) -> None:
        """There is one more; `leave` is to be called for it."""
        network = network_of(address)
        self._held[network] = self._held.get(network, 0) + 1
        self.total += 1

    def leave(self, address: str) -> None:
        """It was closed."""
        network = network_of(address)
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]
        self.total -= 1

    def of(self, address: str) -> int:
        """How many an address has."""
        return self._held.get(network_of(address), 0)


def network_of(address: str) -> str:
    """What counts as one address: of IPv6 a network, unless it stands for an address of IPv4.

    What is no address, as a proxy may forward it, stands for itself.
    """
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> HOST_BITS:x}:"
