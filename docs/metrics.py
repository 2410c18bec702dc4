"""The table of metrics in docs/operating.md, made from what the service would answer."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from app.problems import problem
from app.record import STAGES, Record
from app.telemetry import Telemetry

OWN = "convoke_"
"""What our metrics begin with; the others are those of every process."""

BESIDE = frozenset({"le"})
"""Labels that only say which class of a histogram a sample is of."""


def table() -> str:
    """Every metric with its type, its labels and its meaning, in Markdown."""
    lines = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *sorted(_rows())]) + "\n"


def _rows() -> Iterator[str]:
    text = _counted().exposition().decode()
    for family in text_string_to_metric_families(text):
        if not family.name.startswith(OWN):
            continue
        labels = {label for sample in family.samples for label in sample.labels} - BESIDE
        name = f"{family.name}_total" if family.type == "counter" else family.name
        named = ", ".join(f"`{label}`" for label in sorted(labels))
        yield f"| `{name}` | {family.type} | {named} | {family.documentation} |"


def _counted() -> Telemetry:
    """Metrics that have counted one of everything, so that all labels are seen."""
    telemetry = Telemetry()
    record = Record("id", {}, 0.0, operation="conv", action="forward", status=200)
    record.stages = dict.fromkeys(STAGES, 0.0)
    telemetry.request_done(record)
    telemetry.turned_away("conv", "forward", problem(MemoryError(), "id"), 1)
    telemetry.batch_done("conv", "forward", 1, 1, 0.0)
    telemetry.worker_restarted("crashed")
    telemetry.dropped("deadline")
    return telemetry
