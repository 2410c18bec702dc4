"""Answers that nobody takes count for others up to a share."""

from __future__ import annotations

from app.routes.untaken import Untaken


def test_each_caller_has_a_share() -> None:
    untaken = Untaken(10)
    untaken.add("a", 8)
    untaken.add("b", 10)
    assert untaken.beyond == 0
    assert not any(map(untaken.full, "abc"))
    untaken.add("a", 8)
    assert (untaken.of("a"), untaken.beyond) == (16, 6)
    assert [client for client in "abc" if untaken.full(client)] == ["a"]
    untaken.add("b", 1)
    assert untaken.beyond == 7
    untaken.add("a", -8)
    assert untaken.beyond == 1
    untaken.add("a", -8)
    untaken.add("b", -11)
    assert untaken.of("a") == untaken.of("b") == untaken.beyond == 0
