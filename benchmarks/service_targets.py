"""What the service has to reach, as ratios within one run, and by how much it does or does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.load.bench import Rounds
from benchmarks.load.results import Outcome, Ratio
from benchmarks.service_scenarios import (
    ECHO,
    OURS,
    SIMPLE,
    SIMPLE_1,
    UNBATCHED,
    Findings,
    Overload,
)


@dataclass(frozen=True)
class Check:
    """One target.

    Attributes:
        number: of the target. what: is measured. unit: of the value.
        value, low, high: the median over rounds, and its extremes.
        bound: that it has to reach, 0 where it is only shown.
        at_least: whether it has to be above rather than below.
    """

    number: int
    what: str
    value: float
    low: float
    high: float
    bound: float
    at_least: bool = True
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """In words."""
        if not self.bound:
            return "shown only"
        if self.met:
            return "met"
        if math.isnan(self.value):
            return "not measured"
        short = abs(self.value - self.bound) / self.bound
        return f"short by {short:.0%}" if self.at_least else f"over by {short:.0%}"


def checks(found: Findings) -> list[Check]:
    """Every target that the findings can tell of."""
    return [
        *_against_simple(found),
        *_large_work(found),
        *_batching(found),
        *(check for each in found.overload.items() for check in _overload(*each)),
        *_fairness(found),
        *_copies(found),
    ]


def _ratio(
    number: int,
    what: str,
    ratio: Ratio,
    bound: float,
    *,
    at_least: bool = True,
) -> Check:
    return Check(number, what, ratio.median, ratio.low, ratio.high, bound, at_least)


def _rates(rounds: Rounds, ours: str, theirs: str) -> Ratio:
    return Ratio.of([each.rate for each in rounds[ours]], [each.rate for each in rounds[theirs]])


def _latencies(rounds: Rounds, ours: str, theirs: str, quantile: float) -> Ratio:
    values = [[each.latency(quantile) for each in rounds[name]] for name in (ours, theirs)]
    return Ratio.of(*values)


def _against_simple(found: Findings) -> Iterator[Check]:
    crowd = found.closed.get("small-forward × 64")
    if crowd:
        yield _ratio(1, "small, 64 connections: requests/s ÷ (b)", _rates(crowd, OURS, SIMPLE), 1.0)
        tail = _latencies(crowd, OURS, SIMPLE, 0.99)
        yield _ratio(1, "small, 64 connections: p99 ÷ (b)", tail, 2.0, at_least=False)
    single = found.closed.get("small-forward × 1")
    if single:
        pairs = zip(single[OURS], single[SIMPLE], strict=True)
        more = [(ours.latency(0.5) - theirs.latency(0.5)) * 1e3 for ours, theirs in pairs]
        what = "small, 1 connection: p50 − (b)'s"
        yield _spread(1, what, more, 0.5, at_least=False, unit="ms")


def _large_work(found: Findings) -> Iterator[Check]:
    streams = ("middle-forward", "large-forward", "middle-backward", "large-backward")
    for name in (f"{stream} × 16" for stream in streams):
        rounds = found.closed.get(name, {})
        for theirs in (SIMPLE_1, SIMPLE):
            if theirs in rounds:
                what = f"{name}: requests/s ÷ (b), {theirs}"
                yield _ratio(2, what, _rates(rounds, OURS, theirs), 1.8)


def _batching(found: Findings) -> Iterator[Check]:
    for stream, rounds in found.batching.items():
        what = f"{stream}, 128 connections: batching on ÷ off"
        yield _ratio(3, what, _rates(rounds, OURS, UNBATCHED), 2.0)


def _overload(stream: str, found: Overload) -> Iterator[Check]:
    over = found.over
    peaks = np.array([each.rate for each in found.peak])
    # The machine is another from one round to the next, so that each has the peaks beside it.
    accepted = np.array([each.rate for each in over]) / ((peaks[:-1] + peaks[1:]) / 2)

    def each(what: str, value: Callable[[Outcome], float], bound: float, unit: str) -> Check:
        at_least = unit == "×"
        values = [value(outcome) for outcome in over]
        what = f"overload, {stream}: {what}"
        return _spread(4, what, values, bound, at_least=at_least, unit=unit)

    yield _spread(4, f"overload, {stream}: accepted/s ÷ peak", accepted.tolist(), 0.9)
    yield each("p99 of the refusals", lambda o: _p99(o.delays(503)) * 1e3, 50.0, "ms")
    yield each("retries honoured", _honoured, 0.9, "×")
    # The queue holds so many; those at work when it is full come on top.
    bound = 1.5 * found.queue / float(np.median([each.rate for each in over])) * 1e3
    yield each("p99 of the accepted", lambda o: _p99(o.delays(200)) * 1e3, bound, "ms")
    yield each("memory", lambda o: o.memory / 2**20, found.mebibytes, "MiB")


def _honoured(outcome: Outcome) -> float:
    again = outcome.status[outcome.first > 0]
    return float((again == 200).mean()) if again.size else math.nan


def _p99(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.quantile(values, 0.99)) if len(values) else math.nan


def _fairness(found: Findings) -> Iterator[Check]:
    if found.fairness is None:
        return
    idle = [outcome.latency(0.5) for outcome in found.fairness.alone]
    for what, outcomes in (
        ("of another caller", found.fairness.beside),
        ("of another caller's small ones", found.fairness.crowd),
        ("from the same address", found.fairness.same),
    ):
        ratio = Ratio.of([outcome.latency(0.99) for outcome in outcomes], idle)
        yield _ratio(5, f"small beside a flood {what}: p99 ÷ idle p50", ratio, 10.0, at_least=False)


def _copies(found: Findings) -> Iterator[Check]:
    for name in ("middle-forward × 16", "large-forward × 16"):
        rounds = found.closed.get(name)
        if rounds:
            ours = [each.byte_rate for each in rounds[OURS]]
            ratio = Ratio.of(ours, [each.byte_rate for each in rounds[ECHO]])
            yield _ratio(6, f"{name}: bytes/s ÷ (a)", ratio, 0.0)


def _spread(
    number: int,
    what: str,
    values: Sequence[float],
    bound: float,
    *,
    at_least: bool = True,
    unit: str = "×",
) -> Check:
    low, high = float(np.min(values)), float(np.max(values))
    return Check(number, what, float(np.median(values)), low, high, bound, at_least, unit)
