"""A tally counts as the histograms of Prometheus do."""

from __future__ import annotations

from math import inf

from app.tally import Tally


def test_a_bound_belongs_to_the_class_below_it() -> None:
    tally = Tally((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        tally.add(value)
    assert list(tally.at_most()) == [(1.0, 2), (2.0, 4), (inf, 5)]
    assert tally.total == 7.5
