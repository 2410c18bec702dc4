"""Each address is counted by itself, and one of IPv6 is a network."""

from __future__ import annotations

import pytest

from app.addresses import Addresses


def test_an_address_is_beyond_its_limit_until_it_leaves() -> None:
    addresses = Addresses(2)
    for beyond in (-1, 0, 1):
        addresses.enter("192.0.2.1")
        assert addresses.beyond("192.0.2.1") == beyond
    addresses.enter("192.0.2.2")
    assert addresses.beyond("192.0.2.2") == -1
    addresses.leave("192.0.2.1")
    assert addresses.beyond("192.0.2.1") == 0


def test_without_a_limit_nobody_is_beyond_it() -> None:
    addresses = Addresses(0)
    for _ in range(1000):
        addresses.enter("192.0.2.1")
    assert addresses.beyond("192.0.2.1") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::", True),
        ("2001:db8:1:2::1", "2001:0db8:0001:0002::3", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    addresses = Addresses(1)
    addresses.enter(one)
    addresses.enter(other)
    assert (addresses.beyond(one) == 1) is same


def test_who_has_left_is_forgotten() -> None:
    addresses = Addresses(1)
    for address in ("192.0.2.1", "2001:db8::1", ""):
        addresses.enter(address)
        addresses.leave(address)
    assert addresses._held == {}
