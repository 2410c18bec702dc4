"""The targets, and what a run says about each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from benchmarks.kernels.cases import WEAK
from benchmarks.kernels.measure import Row
from benchmarks.kernels.report import Report

REACHED = 0.8
"""The share of its bound from which on a case counts as close to it: the third target."""


@dataclass(frozen=True)
class Target:
    """One number to be reached.

    Attributes:
        value: what was measured.
        at_least: whether `goal` is the least, else the most.
        note: what it is over, or where it is worst.
        timed: whether it rests on times.
    """

    text: str
    value: float
    goal: float
    at_least: bool
    note: str
    timed: bool = True

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def geometric_mean(values: Iterable[float]) -> float:
    """Of at least one positive value."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs))


def targets(report: Report) -> list[Target]:
    """Every target on which the run has something to say."""
    rows = [row for row in report.rows if row.case not in WEAK]
    return [
        *_against_pytorch(rows),
        *_against_naive(rows),
        *_against_sgemm(rows),
        *_small(report),
        *_threads(report),
        *_linear(report),
    ]


def judged(target: Target, report: Report) -> bool | None:
    """Whether a target is met, or None where a disturbed run cannot tell."""
    return target.met if report.quiet or not target.timed else None


def plain(report: Report) -> dict[str, Any]:
    """The run and its targets as maps, lists, numbers and text; met is null in a disturbed run."""
    found = [
        {**dataclasses.asdict(target), "met": judged(target, report)} for target in targets(report)
    ]
    return {**report.plain(), "targets": found}


def _against_pytorch(rows: Sequence[Row]) -> Iterator[Target]:
    goals = {"forward": (1.0, 1.2), "backward": (1.0, 1.1)}
    for action, (alone, together) in goals.items():
        here = [row for row in rows if row.action == action and row.pytorch_over]
        layers = [row for row in here if row.convolution]
        yield from _mean(f"1. PyTorch / auto, convolutions, {action}", layers, "auto", alone)
        yield from _mean(f"1. PyTorch / auto, all, {action}", here, "auto", together)
    here = [row for row in rows if row.action == "forward" and row.pytorch_over]
    yield from _mean("1. PyTorch / fastest, all, forward", here, "fastest", 1.3)
    yield from _worst(
        "1. PyTorch / auto, every case",
        {_name(row): row.pytorch_over["auto"].median for row in rows if row.pytorch_over},
        0.4,
    )


def _mean(text: str, rows: Sequence[Row], algorithm: str, goal: float) -> Iterator[Target]:
    if rows:
        mean = geometric_mean(row.pytorch_over[algorithm].median for row in rows)
        yield Target(text, mean, goal, True, f"geometric mean of {len(rows)}")


def _against_naive(rows: Sequence[Row]) -> Iterator[Target]:
    for action in ("forward", "backward"):
        here = [row for row in rows if row.action == action]
        if here:
            mean = geometric_mean(row.naive_over["auto"].median for row in here)
            note = f"geometric mean of {len(here)}"
            yield Target(f"2. naive / auto, all, {action}", mean, 3.0, True, note)
    for row in rows:
        if row.case == "vgg-64":
            share = row.workspace["auto"] / row.workspace["naive"]
            note = f"{row.workspace['auto'] / 1e6:.1f} of {row.workspace['naive'] / 1e6:.1f} MB"
            text = f"2. workspace / naive's, vgg-64, {row.action}"
            yield Target(text, share, 0.1, False, note, timed=False)


def _against_sgemm(rows: Sequence[Row]) -> Iterator[Target]:
    for action in ("forward", "backward"):
        bound = [row for row in rows if row.compute_bound and row.action == action]
        direct = {row.case: row.of_sgemm["direct"].median for row in bound}
        yield from _worst(f"3. direct / sgemm rate, compute-bound, {action}", direct, REACHED)
        fewer = {
            row.case: row.of_sgemm["auto"].median
            for row in bound
            if row.algorithms["auto"] != row.algorithms["direct"]
        }
        yield from _worst(f"3. auto / sgemm rate, fewer multiplications, {action}", fewer, 1.0)


def _small(report: Report) -> Iterator[Target]:
    for row in report.rows:
        if row.case == "tiny" and row.action == "forward":
            seconds = row.timings["end_to_end"].seconds
            note = f"{seconds.low * 1e6:.1f} to {seconds.high * 1e6:.1f}"
            text = "4. tiny through engine.forward, µs"
            yield Target(text, seconds.median * 1e6, 30.0, False, note)
    if report.planning is not None:
        first, again = report.planning.first.median, report.planning.repeated.median
        note = f"{again * 1e6:.1f} of {first * 1e6:.1f} µs"
        yield Target("4. planning again / planning first", again / first, 0.2, False, note)


def _threads(report: Report) -> Iterator[Target]:
    for single in (True, False):
        for action in ("forward", "backward"):
            here = {
                f"{one.case} N={one.batch}": one.times.median
                for one in report.speedups
                if one.action == action and (one.batch == 1) == single
            }
            which = "one sample" if single else "batches"
            many = report.machine["threads"]
            text = f"5. {many} threads over 1, {which}, {action}"
            for target in _worst(text, here, 0.9 * many):
                allowed = report.ceiling
                note = "" if allowed is None else f"; the machine allows {allowed.median:.2f}"
                yield dataclasses.replace(target, note=target.note + note)


def _linear(report: Report) -> Iterator[Target]:
    for one in report.growths:
        text = f"6. time grows with {one.axis} to the power of, {one.action}"
        note = f"{one.values[0]} to {one.values[-1]}"
        yield Target(text, one.exponent, 1.1, False, note)


def _worst(text: str, values: Mapping[str, float], goal: float) -> Iterator[Target]:
    """The smallest of the values, with how many reach the goal."""
    if values:
        name = min(values, key=lambda key: values[key])
        reached = sum(value >= goal for value in values.values())
        note = f"lowest, {name}; {reached} of {len(values)} reach it"
        yield Target(text, values[name], goal, True, note)


def _name(row: Row) -> str:
    return f"{row.case} {row.action}"
