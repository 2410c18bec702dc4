"""The tables of what `make bench` and `make bench-service` measured, from the JSON they wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.kernels.cases import CASES, WEAK, Case
from benchmarks.kernels.tables import grid
from benchmarks.kernels.targets import REACHED, geometric_mean
from docs.reasons import REASONS

BENCHMARKS = Path(__file__).resolve().parent / "benchmarks"

Row = Mapping[str, Any]


def kernels() -> str:
    """PyTorch's time over ours, and that of a whole-batch im2col, forward and backward."""
    found = _read("kernels.json")
    machine, rows = found["machine"], found["rows"]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    by_case = {(row["case"], row["action"]): row for row in rows}
    body = [
        [f"`{case}`", *_case(by_case[case, "forward"]), *_case(by_case[case, "backward"])]
        for case in cases
    ]
    convolutions = [row for row in rows if row["convolution"]]
    means = [
        [f"**{name}**", *_mean(some, "forward"), *_mean(some, "backward")]
        for name, some in (("convolutions", convolutions), ("all", rows))
    ]
    head = ["", "forward, ms", "PyTorch", "im2col", "backward, ms", "PyTorch", "im2col"]
    text = (
        f"{machine['processor']}, {machine['threads']} threads for everybody, NumPy {machine['numpy']}, "
        f"PyTorch {machine['pytorch']}. The PyTorch and im2col columns give their time divided by "
        "ours: below 1, they are faster. Rows in bold are geometric means.\n"
    )
    return "\n".join([text, grid(head, [*means, *body], markdown=True), ""])


def weak() -> str:
    """The same of layers at which NumPy is weak."""
    rows = _read("weak.json")["rows"]
    by_case = {(row["case"], row["action"]): row for row in rows}
    body = [
        [
            f"`{name}`",
            described(case),
            *_case(by_case[name, "forward"]),
            *_case(by_case[name, "backward"]),
        ]
        for name, case in WEAK.items()
    ]
    head = [
        "case",
        "layer",
        "forward, ms",
        "PyTorch",
        "im2col",
        "backward, ms",
        "PyTorch",
        "im2col",
    ]
    return "\n".join([grid(head, body, markdown=True, left=head[:2]), ""])


def limits() -> str:
    """What bounds each case, how much of that bound it reaches, and what stops the rest."""
    rows = _read("kernels.json")["rows"]
    return "\n".join(
        part for action in ("forward", "backward") for part in _limits_of(action, rows)
    )


def _limits_of(action: str, rows: Iterable[Row]) -> list[str]:
    some = [row for row in rows if row["action"] == action]
    reached = sum(row["of_limit"] >= REACHED for row in some)
    numbers = ("of it", "PyTorch")
    head = ["case", "layer", "bound by", *numbers, "what stops the rest"]
    body = [
        [
            f"`{row['case']}`",
            described(CASES[row["case"]]),
            *_bound(row),
            _short(_ratio(row, "pytorch")),
            REASONS[row["case"]][action == "backward"],
        ]
        for row in some
    ]
    mean = geometric_mean(row["of_limit"] for row in some)
    return [
        f"**{action.capitalize()}**: {_short(mean)} of the bound in the geometric mean; {reached} of "
        f"{len(some)} cases reach {REACHED} of it.\n",
        grid(head, body, markdown=True, left=[name for name in head if name not in numbers]),
        "",
    ]


def described(case: Case) -> str:
    """A case's layer in a few words: its input, with channels first, and its windows."""
    shape = "×".join(map(str, (case.batch, case.channels, *case.size)))
    window = "×".join(map(str, case.taps))
    filters = f"{case.outputs} of {window}" if case.is_convolution else window
    more = [
        f"stride {case.stride}" if case.stride > 1 else "",
        f"{case.groups} groups" if case.groups > 1 else "",
        "transposed" if case.operation == "conv_transpose" else "",
        "channels last" if case.channels_last else "",
    ]
    return ", ".join([shape, filters, *filter(None, more)])


def service() -> str:
    """Requests a second and latency beside an echo and the simplest server."""
    found = _read("service.json")
    head = ["load", "echo, 1/s", "simplest, 1/s", "ours, 1/s", "ours, p50", "ours, p99"]
    body = [
        [
            load,
            _rate(servers.get("echo")),
            _rate(servers.get("simple")),
            _rate(servers["ours"]),
            f"{_short(servers['ours']['p50_ms'])} ms",
            f"{_short(servers['ours']['p99_ms'])} ms",
        ]
        for load, servers in found["closed"].items()
        if "ours" in servers
    ]
    return "\n".join([grid(head, body, markdown=True), ""])


def _read(name: str) -> Any:
    return json.loads((BENCHMARKS / name).read_text(encoding="utf-8"))


def _case(row: Row) -> list[str]:
    ratios = (_short(_ratio(row, peer)) for peer in ("pytorch", "naive"))
    return [_short(1e3 * _seconds(row, "auto")), *ratios]


def _bound(row: Row) -> list[str]:
    return [{"compute": "`sgemm`", "memory": "copying"}[row["limit"]], f"{row['of_limit']:.2f}"]


def _mean(rows: Iterable[Row], action: str) -> list[str]:
    some = [row for row in rows if row["action"] == action]
    means = (geometric_mean(_ratio(row, peer) for row in some) for peer in ("pytorch", "naive"))
    return ["", *(f"**{_short(mean)}**" for mean in means)]


def _ratio(row: Row, peer: str) -> float:
    return float(row[f"{peer}_over"]["auto"]["median"])


def _seconds(row: Row, peer: str) -> float:
    return float(row["timings"][peer]["seconds"]["median"])


def _rate(server: Row | None) -> str:
    return _short(server["requests_per_s"]) if server else ""


def _short(number: float) -> str:
    """Two or three digits: as much as these measurements are worth."""
    return (
        f"{number:,.0f}" if number >= 100 else f"{number:.2g}" if number < 10 else f"{number:.0f}"
    )
