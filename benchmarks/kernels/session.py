"""One run: what is measured, in which order, and how much of the time each part gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from benchmarks.kernels import machine, naive, optional, ours, planning, pytorch
from benchmarks.kernels.cases import CASES, Case, inputs
from benchmarks.kernels.contention import now, others
from benchmarks.kernels.disturbance import disturbances
from benchmarks.kernels.measure import Limits, measure
from benchmarks.kernels.report import Report
from benchmarks.kernels.scaling import AXES, growth
from benchmarks.kernels.speedup import ceiling, speedup, variants
from benchmarks.kernels.timing import Budget, Peer, Spread, paired

ACTIONS = ("forward", "backward")
ROW = {"forward": 1.0, "backward": 1.5}
"""Shares of the time, relative to a case's forward; so are those below."""

SPEEDUP, GROWTH = 0.3, 0.6

FULL = 40.0
"""Weight by which a job's most seconds are set: half that of a whole run, for those behind time."""


@dataclass(frozen=True)
class Job:
    """One measurement and its share of the time."""

    label: str
    weight: float
    run: Callable[[Budget], None]


def run_all(
    jobs: Sequence[Job], seconds: float, least: int, progress: Callable[[str], None]
) -> int:
    """Run the jobs, dividing what is left of the time by the weights of those left.

    A few cases alone do not take the time of all: each gets at most its share of a whole run. Once
    the time is up, each of the others has a single round. Returns how many had.
    """
    start = perf_counter()
    hurried = 0
    for index, job in enumerate(jobs):
        left = max(0.0, seconds - (perf_counter() - start))
        share = left * job.weight / sum(other.weight for other in jobs[index:])
        progress(f"[{index + 1}/{len(jobs)}] {job.label}")
        if share > 0:
            job.run(Budget(min(share, job.weight * seconds / FULL), least=least))
        else:
            hurried += 1
            job.run(Budget(0.0, least=1))
    return hurried


@dataclass(frozen=True)
class Session:
    """How to measure.

    Attributes:
        threads: for everybody.
        seconds: for everything.
        least: rounds of each measurement, while there is time.
        progress: is told of it.
    """

    threads: int
    seconds: float
    least: int
    progress: Callable[[str], None]

    def run(self, cases: Sequence[Case], complete: bool) -> Report:
        """Measure the cases; with `complete` also planning, threads, growth and disturbances."""
        sgemm = machine.sgemm()
        with machine.copying(self.threads) as copy:
            limits = Limits(
                sgemm, copy, machine.SGEMM_FLOPS, machine.COPY_BYTES, threads=self.threads
            )
            rates, limits = _rates(limits)
            report = Report(machine.describe(self.threads), rates, complete)
            jobs = self._rows(report, cases, limits)
            if complete:
                jobs += self._beyond(report, limits)
            since = now()
            report.hurried = run_all(jobs, self.seconds, self.least, self.progress)
            report.others = others(since, now())
        return report

    def _rows(self, report: Report, cases: Sequence[Case], limits: Limits) -> list[Job]:
        torch = optional.find("torch")

        def row(case: Case, action: str, budget: Budget) -> None:
            report.rows.append(measure(case, action, limits, torch, budget))

        return [
            Job(f"{case.name} {action}", ROW[action], partial(row, case, action))
            for case in cases
            for action in ACTIONS
        ]

    def _beyond(self, report: Report, limits: Limits) -> list[Job]:
        def plans(_: Budget) -> None:
            report.planning = planning.planning(CASES["tiny"])

        def disturbed(budget: Budget) -> None:
            report.disturbances += disturbances(_disturbers(limits), rounds=2 * budget.least - 1)

        def scaled(case: Case, action: str, budget: Budget) -> None:
            report.speedups.append(speedup(case, action, self.threads, budget))

        def grown(axis: str, action: str, budget: Budget) -> None:
            report.growths.append(growth(axis, action, budget))

        def limited(budget: Budget) -> None:
            report.ceiling = ceiling(self.threads, budget)

        jobs = [Job("planning", 0.1, plans), Job("disturbance", 1.0, disturbed)]
        if self.threads > 1:
            jobs.append(Job("threads sgemm", 1.0, limited))
        for action in ACTIONS:
            jobs += [
                Job(f"growth with {axis} {action}", GROWTH, partial(grown, axis, action))
                for axis in AXES
            ]
            if self.threads > 1:
                jobs += [
                    Job(
                        f"threads {case.name} N={case.batch} {action}",
                        SPEEDUP,
                        partial(scaled, case, action),
                    )
                    for case in variants()
                ]
        return jobs


def _rates(limits: Limits) -> tuple[dict[str, Spread], Limits]:
    """What the machine does a second, and its peers with the seconds that a call of each takes."""
    samples = paired([limits.sgemm, limits.copy], Budget(2.0))
    works = {"sgemm": limits.sgemm_flops, "copy": limits.copy_bytes}
    seconds = {name: found.seconds for name, found in samples.items()}
    rates = {
        name: Spread(
            work / seconds[name].median, work / seconds[name].high, work / seconds[name].low
        )
        for name, work in works.items()
    }
    return rates, replace(
        limits,
        sgemm=replace(limits.sgemm, single=seconds["sgemm"].median),
        copy=replace(limits.copy, single=seconds["copy"].median),
    )


def _disturbers(limits: Limits) -> list[Peer]:
    case = CASES["res-256"]
    tensors = inputs(case.tensors(), "forward")
    peers = [Peer("auto", ours.prepare(case, "forward", "auto", tensors).on(tensors))]
    torch = optional.find("torch")
    if torch is not None:
        peers.append(Peer("pytorch", pytorch.call(torch, case, "forward", tensors)))
    return [*peers, Peer("naive", lambda: naive.forward(case, tensors)), limits.sgemm]
