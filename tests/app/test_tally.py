"""A tally counts, and is written, as the histograms of Prometheus are."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as Theirs
from prometheus_client.parser import text_string_to_metric_families

from app.tally import Histogram, Tally


def test_a_bound_belongs_to_the_class_below_it() -> None:
    tally = Tally((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        tally.add(value)
    assert list(tally.at_most()) == [2, 4, 5]
    assert tally.total == 7.5


def test_a_histogram_is_read_as_one_of_the_client_library() -> None:
    registry = CollectorRegistry()
    bounds, labels = (0.00025, 1, 1024), ("action", "stage")
    theirs = Theirs("seconds", "How long.", labels, registry=registry, buckets=bounds)
    ours = Histogram("seconds", "How long.", labels, bounds)
    for action, stage, value in (
        ("forward", "decode", 0.0001),
        ("forward", "decode", 1e-7),
        ("forward", "queue", 1.0),
        ("plan", "decode", 2000.0),
    ):
        theirs.labels(action, stage).observe(value)
        ours.add((action, stage), value)
    expected, *created = text_string_to_metric_families(generate_latest(registry).decode())
    assert list(text_string_to_metric_families(ours.text())) == [expected]
    assert [metric.name for metric in created] in ([], ["seconds_created"])
