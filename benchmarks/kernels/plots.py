"""The run as two pictures: ratios by case, and growth along every axis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.kernels.measure import Row
from benchmarks.kernels.report import Report

ACTIONS = ("forward", "backward")
PEERS = {"pytorch": ("PyTorch / ours", "tab:orange"), "naive": ("naive / ours", "tab:gray")}


def draw(report: Report, folder: Path) -> list[Path]:
    """Write kernels.png and scaling.png, as far as the run has anything for them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure, wanted in (
        ("kernels.png", kernels, report.rows),
        ("scaling.png", scaling, report.growths),
    ):
        if wanted:
            written.append(folder / name)
            figure(report).savefig(folder / name, dpi=110)
    return written


def kernels(report: Report) -> Figure:
    """For each case and action, how many times faster than each peer the engine is, with spread."""
    names = list(dict.fromkeys(row.case for row in report.rows))
    figure = Figure(figsize=(11, 1.5 + 0.28 * len(names)), layout="constrained")
    for axes, action in zip(figure.subplots(1, 2, sharey=True), ACTIONS, strict=True):
        rows = [row for row in report.rows if row.action == action]
        for offset, peer in zip((-0.2, 0.2), PEERS, strict=True):
            _bars(axes, [row for row in rows if _over(row, peer)], names, peer, offset)
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xscale("log")
        axes.set_title(action)
        axes.set_xlabel("times as fast (auto); bars end at the median, lines span 10 to 90 %")
        axes.set_yticks(range(len(names)), names)
        axes.grid(axis="x", alpha=0.3)
    axes.invert_yaxis()
    figure.axes[0].legend(loc="best")
    _mark(figure, report)
    return figure


def _mark(figure: Figure, report: Report) -> None:
    """A picture travels without its tables, so it says itself what it must not be used for."""
    if not report.quiet:
        figure.suptitle("DISTURBED: others used the machine; not to be quoted", color="tab:red")


def _over(row: Row, peer: str) -> bool:
    return bool(row.pytorch_over if peer == "pytorch" else row.naive_over)


def _bars(axes: Axes, rows: list[Row], names: list[str], peer: str, offset: float) -> None:
    label, color = PEERS[peer]
    spreads = [(row.pytorch_over if peer == "pytorch" else row.naive_over)["auto"] for row in rows]
    places = [names.index(row.case) + offset for row in rows]
    middle = np.array([s.median for s in spreads])
    # On a logarithmic axis bars have to begin somewhere: at 1, where both are equally fast.
    axes.barh(places, middle - 1, 0.38, left=1, color=color, label=label)
    axes.hlines(places, [s.low for s in spreads], [s.high for s in spreads], color="black")


def scaling(report: Report) -> Figure:
    """Time against each size, both logarithmic, with a line of slope 1 through the middle."""
    names = list(dict.fromkeys(one.axis for one in report.growths))
    figure = Figure(figsize=(3.2 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for one in (one for one in report.growths if one.axis == name):
            values = np.array(one.values, float)
            middle = np.array([s.median for s in one.seconds]) * 1e3
            low = middle - np.array([s.low for s in one.seconds]) * 1e3
            high = np.array([s.high for s in one.seconds]) * 1e3 - middle
            label = f"{one.action}, power {one.exponent:.2f}"
            axes.errorbar(values, middle, [low, high], marker="o", capsize=2, label=label)
            through = np.exp(np.mean(np.log(middle / values)))
            axes.plot(values, through * values, color="gray", linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(name)
        axes.grid(which="both", alpha=0.2)
        axes.legend(fontsize="small")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_xticks([], minor=True)
    panels[0].set_ylabel("ms (dotted: linear)")
    _mark(figure, report)
    return figure
