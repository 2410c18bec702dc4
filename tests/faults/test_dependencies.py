"""What the service is made of: pinned, hashed, and looked at by somebody."""

from __future__ import annotations

import re

import pytest

from benchmarks.load.servers import ROOT

REQUIREMENTS = ROOT / "requirements"
PIN = re.compile(
    r"^([a-z0-9-]+)==(\S+?)(?: ;.*)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)

LEAST = {"msgpack": (1, 2, 1)}
"""Versions below which a package has a fault that reaches us: msgpack's unpacker could crash."""


def pins(name: str) -> list[tuple[str, str]]:
    """Name and version of each pin of a lock; a package may have several for several Pythons."""
    return [(name, version) for name, version, _ in PIN.findall((REQUIREMENTS / name).read_text())]


@pytest.mark.parametrize("name", sorted(path.name for path in REQUIREMENTS.glob("*.txt")))
def test_every_package_of_a_lock_has_a_version_and_hashes(name: str) -> None:
    named = re.findall(r"^([a-z0-9-]+)", (REQUIREMENTS / name).read_text(), re.M)
    assert named
    assert named == [name for name, _ in pins(name)], "a package without a pin or without a hash"


def test_no_pin_is_one_with_a_known_fault() -> None:
    for name, version in pins("base.txt"):
        numbers = tuple(map(int, version.split(".")[:3]))
        assert numbers >= LEAST.get(name, (0,)), f"{name} {version}"


def test_each_package_of_the_service_was_looked_at() -> None:
    """The audit in the document is of the versions in the lock, and leaves none out."""
    text = (ROOT / "docs" / "security.md").read_text()
    audited = re.findall(r"^\| `([a-z0-9-]+)` \| (\S+) \|", text, re.M)
    assert audited == pins("base.txt")
