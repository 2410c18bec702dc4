"""Each address is counted by itself, and one of IPv6 is a network."""

from __future__ import annotations

import pytest

from app.addresses import Addresses


def test_they_are_counted_until_they_leave() -> None:
    addresses = Addresses()
    for count in (1, 2, 3):
        addresses.enter("192.0.2.1")
        assert addresses.of("192.0.2.1") == addresses.total == count
    addresses.enter("192.0.2.2")
    assert (addresses.of("192.0.2.2"), addresses.total) == (1, 4)
    addresses.leave("192.0.2.1")
    assert (addresses.of("192.0.2.1"), addresses.total) == (2, 3)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::", True),
        ("2001:db8:1:2::1", "2001:0db8:0001:0002::3", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("no:address", "no:other", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    addresses = Addresses()
    addresses.enter(one)
    addresses.enter(other)
    assert addresses.of(one) == (2 if same else 1)


def test_who_has_left_is_forgotten() -> None:
    addresses = Addresses()
    for address in ("192.0.2.1", "2001:db8::1", ""):
        addresses.enter(address)
        addresses.leave(address)
    assert addresses._held == {}
