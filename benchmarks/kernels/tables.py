"""A run as tables: aligned text for a terminal, or Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.kernels.measure import Row
from benchmarks.kernels.report import Report
from benchmarks.kernels.targets import Target, judged, targets
from benchmarks.kernels.timing import Spread

ABSENT = "–"

HURRIED = "Time was up: {} measurements had a single round, so their spread says nothing.\n"

DISTURBED = (
    "DISTURBED: others used the machine, and peers do not suffer alike from that. No ratio of this\n"
    "run may be quoted and no target of time is judged by it.\n"
)


def grid(
    header: Sequence[str],
    lines: Sequence[Sequence[str]],
    markdown: bool,
    left: Sequence[str] = (),
) -> str:
    """A table; the first column is set to the left, the others to the right but those in `left`.

    Args:
        left: heads of columns of words; they are set so in Markdown alone.
    """
    if markdown:
        rule = ["---", *("---" if name in left else "---:" for name in header[1:])]
        return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in (header, *lines)
    )


def document(report: Report, markdown: bool) -> str:
    """Every table of the run, with headings."""
    parts = [("Kernels, measured", _machine(report))]
    if found := targets(report):
        parts.append(("Targets", _targets(found, report, markdown)))
    for action in ("forward", "backward"):
        here = [row for row in report.rows if row.action == action]
        if here:
            parts.append((f"{action.capitalize()}: time", _times(here, markdown)))
            parts.append((f"{action.capitalize()}: limits and memory", _limits(here, markdown)))
    if report.speedups:
        parts.append(
            (f"{report.machine['threads']} threads against one", _speedups(report, markdown))
        )
    if report.growths:
        parts.append(("Growth over a decade", _growths(report, markdown)))
    if report.disturbances:
        parts.append(("What a peer does to the next", _disturbances(report, markdown)))
    marks = ("#", *["##"] * len(parts)) if markdown else ("==",) * len(parts)
    return "\n\n".join(
        f"{mark} {title}\n\n{text}" for mark, (title, text) in zip(marks, parts, strict=False)
    )


def _machine(report: Report) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    sgemm, copy = report.limits["sgemm"], report.limits["copy"]
    others = "unknown" if report.others is None else f"{report.others:.2f}"
    return (
        f"{machine}; processors used by other programs: {others}.\n"
        f"{'' if report.quiet else DISTURBED}"
        f"{HURRIED.format(report.hurried) if report.hurried else ''}"
        f"Limits: sgemm {_span(sgemm, 1e-9)} GFLOP/s, copy {_span(copy, 1e-9)} GB/s read and"
        " written.\nTimes are medians; in brackets the 10th and 90th percentile. Ratios are medians"
        " over rounds\nin which the peers took turns. A ratio above 1 means that the engine is faster."
    )


def _targets(found: Sequence[Target], report: Report, markdown: bool) -> str:
    lines = [
        [
            t.text,
            f"{t.value:.2f}",
            f"{'≥' if t.at_least else '≤'} {t.goal:g}",
            {True: "yes", False: "no", None: "not judged"}[judged(t, report)],
            t.note,
        ]
        for t in found
    ]
    return grid(["target", "measured", "goal", "met", "over"], lines, markdown)


def _times(rows: Sequence[Row], markdown: bool) -> str:
    header = [
        "case", "auto ms", "PyTorch ms", "naive ms", "PyTorch / auto", "PyTorch / fastest",
        "PyTorch / direct", "naive / auto", "auto runs", "fastest runs",
    ]  # fmt: skip
    lines = [
        [
            row.case,
            *(_milliseconds(row, peer) for peer in ("auto", "pytorch", "naive")),
            _ratio(row.pytorch_over.get("auto")),
            *(_middle(row.pytorch_over.get(name)) for name in ("fastest", "direct")),
            _middle(row.naive_over["auto"]),
            *(row.algorithms[name] for name in ("auto", "fastest")),
        ]
        for row in rows
    ]
    return grid(header, lines, markdown)


def _limits(rows: Sequence[Row], markdown: bool) -> str:
    header = [
        "case", "GFLOP", "MB moved", "auto GFLOP/s", "auto / sgemm", "fastest / sgemm",
        "direct / sgemm", "auto / copy", "bound by", "of it", "workspace MB", "naive MB",
    ]  # fmt: skip
    lines = [
        [
            row.case,
            f"{row.flops / 1e9:.3f}",
            f"{row.moved / 1e6:.1f}",
            f"{row.flops / row.timings['auto'].seconds.median / 1e9:.1f}",
            *(f"{row.of_sgemm[name].median:.2f}" for name in ("auto", "fastest", "direct")),
            f"{row.of_copy['auto'].median:.2f}",
            "memory" if row.memory_bound else "compute",
            f"{row.of_limit:.2f}",
            *(f"{row.workspace[name] / 1e6:.1f}" for name in ("auto", "naive")),
        ]
        for row in rows
    ]
    return grid(header, lines, markdown)


def _speedups(report: Report, markdown: bool) -> str:
    lines = [[one.case, str(one.batch), one.action, _ratio(one.times)] for one in report.speedups]
    if report.ceiling is not None:
        lines.insert(0, ["products that share nothing", "", "", _ratio(report.ceiling)])
    return grid(["case", "N", "action", "times as fast"], lines, markdown)


def _growths(report: Report, markdown: bool) -> str:
    lines = [
        [
            one.axis,
            one.action,
            f"{one.exponent:.2f}",
            ", ".join(
                f"{value}: {seconds.median * 1e3:.3g}"
                for value, seconds in zip(one.values, one.seconds, strict=True)
            ),
        ]
        for one in report.growths
    ]
    return grid(["axis", "action", "exponent", "ms"], lines, markdown)


def _disturbances(report: Report, markdown: bool) -> str:
    lines = [
        [one.first, one.second, f"{one.busy * 1e3:.1f}", _ratio(one.slowdown)]
        for one in report.disturbances
    ]
    header = ["first", "next", "ms until quiet", "next's time at once / after rest"]
    return grid(header, lines, markdown)


def _milliseconds(row: Row, peer: str) -> str:
    return _span(row.timings[peer].seconds, 1e3) if peer in row.timings else ABSENT


def _span(spread: Spread, scale: float) -> str:
    found = spread.scaled(scale)
    return f"{found.median:.3g} [{found.low:.3g}, {found.high:.3g}]"


def _ratio(spread: Spread | None) -> str:
    if spread is None:
        return ABSENT
    return f"{spread.median:.2f} [{spread.low:.2f}, {spread.high:.2f}]"


def _middle(spread: Spread | None) -> str:
    return ABSENT if spread is None else f"{spread.median:.2f}"
