"""Answers that nobody takes are bounded, and count for others up to a share."""

from __future__ import annotations

from app.routes.untaken import Untaken


def test_each_caller_counts_up_to_a_share() -> None:
    untaken = Untaken(40)
    untaken.send("a", 8)
    untaken.send("b", 10)
    assert untaken.beyond == 0
    untaken.send("a", 8)
    assert untaken.beyond == 6
    untaken.send("b", 1)
    assert untaken.beyond == 7
    untaken.send("a", -16)
    untaken.send("b", -11)
    assert untaken.beyond == 0


def test_each_caller_may_have_half_from_when_it_asks() -> None:
    untaken = Untaken(40)
    assert not untaken.full("a", 100)
    untaken.promise("a", 12)
    assert untaken.full("a", 9)
    assert not untaken.full("a", 8)
    assert not untaken.full("b", 8)
    untaken.promise("a", -12)
    untaken.send("a", 12)
    assert untaken.full("a", 9)
    untaken.send("a", -12)
    assert not untaken.full("a", 100)
