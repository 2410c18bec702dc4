"""The service's benchmark as text, JSON and a plot."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from benchmarks.load.bench import Rounds
from benchmarks.load.results import Outcome, pooled
from benchmarks.service_scenarios import OURS, Findings
from benchmarks.service_targets import Check, checks
from engine.wakefulness import DEVICE

LEGEND = """\
(a) `echo` sends each body back over raw ASGI; (b) `simple` is one FastAPI route that decodes, computes
in the event loop and encodes, with the engine's own threads or a single one; (c) `ours` has its
default settings. All run on this machine beside the load generator. Servers take turns in short
rounds; rates and latencies are over all rounds, ratios are medians over neighbouring rounds with the
extremes in brackets. `batch` is the mean number of requests in a call, `CPU` the time of the whole
process tree for one request, `memory` that of the process tree with shared pages counted once.
Where the system grants it, `ours` keeps idle processors awake while it has work, which is as good for the
load generator beside it; `ours, asleep` does not (`--keep-awake false`).
Overload is beside the mean of the peaks before and after it, a flood beside the idle round before it.
"""


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The numbers of one server under one load."""
    answers = sum(len(outcome.end) for outcome in outcomes)
    sizes = [size for outcome in outcomes for size in outcome.batches]
    return {
        "requests_per_s": float(np.mean([outcome.rate for outcome in outcomes])),
        "p50_ms": pooled(outcomes, 0.5) * 1e3,
        "p99_ms": pooled(outcomes, 0.99) * 1e3,
        "p999_ms": pooled(outcomes, 0.999) * 1e3,
        "bytes_per_s": float(np.mean([outcome.byte_rate for outcome in outcomes])),
        "batch": len(sizes) / sum(1 / size for size in sizes) if sizes else 1.0,
        "cpu_ms": sum(outcome.cpu for outcome in outcomes) / max(answers, 1) * 1e3,
        "memory_bytes": float(max(outcome.memory for outcome in outcomes)),
    }


_COLUMNS = (
    "load | server | requests/s | p50 ms | p99 ms | p99.9 ms | MB/s | batch | CPU ms | memory MB"
)


def _rows(name: str, rounds: Rounds) -> Iterator[Sequence[str]]:
    for server, outcomes in rounds.items():
        s = summary(outcomes)
        yield (
            name,
            server,
            f"{s['requests_per_s']:.4g}",
            *(f"{s[key]:.3g}" for key in ("p50_ms", "p99_ms", "p999_ms")),
            f"{s['bytes_per_s'] / 1e6:.4g}",
            f"{s['batch']:.1f}",
            f"{s['cpu_ms']:.3g}",
            f"{s['memory_bytes'] / 1e6:.0f}",
        )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, its columns aligned."""
    cells = [list(heads), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def targets_table(found: Sequence[Check]) -> str:
    """Every target with its verdict."""
    rows = [
        (
            str(check.number),
            check.what,
            f"{check.value:.2f} {check.unit}",
            f"{check.low:.2f} to {check.high:.2f}",
            ("≥" if check.at_least else "≤") + f" {check.bound:.4g}" if check.bound else "",
            check.verdict,
        )
        for check in found
    ]
    return table(("", "what", "measured", "rounds", "target", "verdict"), rows)


def markdown(found: Findings) -> str:
    """The whole report."""
    heads = _COLUMNS.split(" | ")
    parts = ["# The service under load\n", LEGEND, "## Targets\n", targets_table(checks(found))]
    if loads := _closed(found):
        rows = [row for name, rounds in loads.items() for row in _rows(name, rounds)]
        parts += ["## Closed loop\n", table(heads, rows)]
    if found.ladder:
        rows = [row for at, rounds in found.ladder.items() for row in _rows(f"{at:.0f}/s", rounds)]
        parts += ["## Open loop, small-forward\n", table(heads, rows)]
        parts.append("![Latency against load](service.png)\n")
    for title, sides in (("Overload", _overload(found)), ("Fairness", _fairness(found))):
        if sides:
            rows = [row for name, rounds in sides.items() for row in _rows(name, rounds)]
            parts += [f"## {title}\n", table(heads, rows)]
    return "\n".join(parts)


def _closed(found: Findings) -> dict[str, Rounds]:
    return {**found.closed, **{f"{s} × 128": r for s, r in found.batching.items()}}


def _overload(found: Findings) -> dict[str, Rounds]:
    return {
        f"{stream}, {what}": {each.server: outcomes}
        for stream, each in found.overload.items()
        for what, outcomes in (("peak", each.peak), ("twice the peak", each.over))
    }


def _fairness(found: Findings) -> dict[str, Rounds]:
    """What the caller with small requests got."""
    if found.fairness is None:
        return {}
    return {
        "small alone": {OURS: found.fairness.alone},
        "small beside another's flood": {OURS: found.fairness.beside},
        "small beside another's 64 small ones": {OURS: found.fairness.crowd},
        "small beside a flood from the same address": {OURS: found.fairness.same},
    }


def as_json(found: Findings, about: Mapping[str, Any]) -> str:
    """The numbers of the report, and the machine they are from."""
    document = {
        **about,
        "machine": {
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "grants_wakefulness": os.access(DEVICE, os.W_OK),
        },
        "targets": [{**vars(check), "verdict": check.verdict} for check in checks(found)],
        "closed": _summaries(_closed(found)),
        "open": _summaries({f"{rate:.0f}": rounds for rate, rounds in found.ladder.items()}),
        "overload": _summaries(_overload(found)),
        "fairness": _summaries(_fairness(found)),
    }
    text = json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def _plain(value: Any) -> Any:
    """A part of the document in which what was not measured is null, as JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _summaries(loads: Mapping[str, Rounds]) -> dict[str, Any]:
    return {
        name: {server: summary(outcomes) for server, outcomes in rounds.items()}
        for name, rounds in loads.items()
    }


def plot(found: Findings, path: Path) -> None:
    """Latency against offered load, for each server."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    rates = list(found.ladder)
    servers = list(next(iter(found.ladder.values())))
    for color, server in enumerate(servers):
        for quantile, style in ((0.5, "-"), (0.99, "--"), (0.999, ":")):
            values = [pooled(found.ladder[rate][server], quantile) * 1e3 for rate in rates]
            label = f"{server}, p{quantile * 100:g}"
            axes.plot(rates, values, style, color=f"C{color}", marker=".", label=label)
    axes.set(xlabel="offered requests/s (Poisson)", ylabel="ms from due to answered", yscale="log")
    axes.set_title("small-forward: latency against load")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)
