"""What the service's benchmark runs: one function for each question, each paired within itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from benchmarks.load.bench import Bench, Rounds, tell
from benchmarks.load.loads import Spec
from benchmarks.load.results import Outcome

OURS, UNBATCHED, ASLEEP = "ours", "ours, unbatched", "ours, asleep"
SIMPLE, SIMPLE_1 = "simple", "simple, 1 thread"
ECHO = "echo"

LADDER = (0.2, 0.4, 0.6, 0.8, 0.95, 1.1)
"""Offered loads of the open loop, as parts of the faster server's peak."""

NEIGHBOUR = "127.0.0.2"
"""The address of the caller that floods."""


@dataclass(frozen=True)
class Effort:
    """How long everything takes.

    Attributes:
        rounds: for each server and load.
        scale: by which the seconds of a round are multiplied.
    """

    rounds: int
    scale: float

    @property
    def few(self) -> int:
        """Rounds of what takes long."""
        return max(1, self.rounds // 2)


SHORT, FULL = Effort(3, 0.8), Effort(5, 1.5)


@dataclass(frozen=True)
class Overload:
    """A server at twice its peak: the overload's rounds, retries obeyed, and the peak's around them.

    Attributes:
        queue: requests that it takes.
        mebibytes: of memory that it may have.
    """

    server: str
    queue: int
    peak: list[Outcome]
    over: list[Outcome]
    mebibytes: float = 1024.0


@dataclass(frozen=True)
class Fairness:
    """One caller with small requests: alone, beside large ones and small ones from elsewhere, and beside
    large ones from its own address."""

    alone: list[Outcome]
    beside: list[Outcome]
    crowd: list[Outcome]
    same: list[Outcome]


@dataclass
class Findings:
    """Everything that a run found; `closed` by name of the load and server."""

    closed: dict[str, Rounds] = field(default_factory=dict)
    ladder: dict[float, Rounds] = field(default_factory=dict)
    batching: dict[str, Rounds] = field(default_factory=dict)
    overload: dict[str, Overload] = field(default_factory=dict)
    fairness: Fairness | None = None


def closed(bench: Bench, effort: Effort, found: Findings) -> None:
    """Fixed concurrency: every body, both actions, and streams of several."""
    table: list[tuple[str, int, float, tuple[str, ...]]] = [
        ("small-forward", 64, 1.0, (ECHO, SIMPLE, OURS, ASLEEP)),
        ("small-forward", 4, 0.7, (ECHO, SIMPLE, OURS)),
        ("small-forward", 1, 0.7, (ECHO, SIMPLE, OURS, ASLEEP)),
        ("small-backward", 64, 1.0, (ECHO, SIMPLE, OURS)),
        ("middle-forward", 16, 1.5, (ECHO, SIMPLE, SIMPLE_1, OURS, ASLEEP)),
        ("middle-backward", 16, 2.0, (ECHO, SIMPLE, SIMPLE_1, OURS)),
        ("large-forward", 16, 4.0, (ECHO, SIMPLE, SIMPLE_1, OURS)),
        ("mixed", 32, 1.5, (ECHO, SIMPLE, OURS)),
        ("unlike", 64, 1.0, (ECHO, SIMPLE, OURS)),
        ("unlike", 1, 0.7, (ECHO, SIMPLE, OURS)),
    ]
    if effort is FULL:
        table.append(("large-backward", 16, 8.0, (ECHO, SIMPLE, SIMPLE_1, OURS)))
    for stream, connections, seconds, servers in table:
        # A round of large bodies is long for its answers' sake; two of them say as much as three.
        rounds = effort.rounds if seconds < 4 else max(2, effort.few)
        spec = Spec(stream=stream, connections=connections, seconds=seconds * effort.scale)
        found.closed[f"{stream} × {connections}"] = bench.paired(servers, spec, rounds)


def ladder(bench: Bench, effort: Effort, found: Findings) -> None:
    """Poisson arrivals of small requests, at loads from idle to beyond the peak."""
    probe = Spec(stream="small-forward", connections=64, seconds=0.7 * effort.scale)
    peaks = bench.paired((SIMPLE, OURS), probe, 1)
    peak = max(outcome.rate for outcomes in peaks.values() for outcome in outcomes)
    for part in LADDER:
        spec = replace(probe, connections=256, rate=part * peak, seconds=1.0 * effort.scale)
        found.ladder[part * peak] = bench.paired((SIMPLE, OURS), spec, effort.few)


def batching(bench: Bench, effort: Effort, found: Findings) -> None:
    """Equal small requests, as many as saturate the workers, with batching on and off."""
    for stream in ("small-forward", "small-backward"):
        spec = Spec(stream=stream, connections=128, seconds=0.8 * effort.scale)
        found.batching[stream] = bench.paired((OURS, UNBATCHED), spec, effort.rounds)


def overload(bench: Bench, effort: Effort, found: Findings) -> None:
    """Twice the peak, with refused requests sent again once, when their `Retry-After` says so."""
    for stream, connections, queue in (("small-forward", 64, 256), ("middle-forward", 16, 32)):
        server = f"ours, queue of {queue}"
        probe = Spec(stream=stream, connections=connections, seconds=1.5 * effort.scale)
        spec = replace(probe, connections=512, seconds=5.0 * effort.scale, obey=True)
        each = Overload(server, queue, bench.round(server, probe), [])
        _at_twice_the_peak(bench, each, probe, spec, effort.rounds)
        found.overload[stream] = each
    if effort is FULL:
        # Its queue has room for so many of them, whose tensors come to 2 GiB.
        probe = Spec(stream="large-backward", connections=16, seconds=6.0 * effort.scale)
        spec = replace(probe, connections=128, seconds=10.0 * effort.scale, obey=True)
        each = Overload(OURS, 27, bench.round(OURS, probe), [], mebibytes=3072.0)
        _at_twice_the_peak(bench, each, probe, spec, effort.few)
        found.overload["large-backward"] = each


def _at_twice_the_peak(bench: Bench, each: Overload, probe: Spec, spec: Spec, rounds: int) -> None:
    """Overload a server, and see between the rounds what its peak is now."""
    tell(replace(spec, rate=2 * each.peak[0].rate), rounds)
    for number in range(rounds):
        rate = 2 * each.peak[-1].rate
        each.over.extend(bench.round(each.server, replace(spec, rate=rate, seed=number)))
        each.peak.extend(bench.round(each.server, replace(probe, seed=number)))


def fairness(bench: Bench, effort: Effort, found: Findings) -> None:
    """One caller with one small request at a time, while another floods with large ones, or small ones."""
    small = Spec(stream="small-forward", connections=1, seconds=4.0 * effort.scale)
    flood = Spec(stream="large-forward", connections=8, seconds=5.0 * effort.scale)
    crowd = Spec(
        stream="small-forward", connections=64, seconds=5.0 * effort.scale, source=NEIGHBOUR
    )
    late = replace(small, delay=0.5)
    bench.round(OURS, replace(flood, seconds=0.5))
    fair = Fairness([], [], [], [])
    tell(flood, 2 * effort.rounds)
    tell(crowd, effort.rounds)
    for _ in range(effort.rounds):
        fair.alone.extend(bench.round(OURS, replace(small, seconds=1.0)))
        fair.beside.extend(bench.round(OURS, replace(flood, source=NEIGHBOUR), aside=[late])[1:])
        fair.crowd.extend(bench.round(OURS, crowd, aside=[late])[1:])
        fair.same.extend(bench.round(OURS, flood, aside=[late])[1:])
    found.fairness = fair


SCENARIOS = {
    "closed": closed,
    "ladder": ladder,
    "batching": batching,
    "overload": overload,
    "fairness": fairness,
}
