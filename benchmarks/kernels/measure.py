"""One case, one action: every peer checked against the naive one, its memory taken, then timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import engine
from benchmarks.kernels import memory, naive, ours, pytorch
from benchmarks.kernels.cases import Case, Tensors, inputs
from benchmarks.kernels.timing import Budget, Peer, Samples, Spread, paired

TOLERANCE = 1e-3
"""Difference between peers, relative to the largest value, above which they are not the same layer."""


class PeersDisagree(Exception):
    """Two peers did not compute the same thing, so that their times say nothing."""


@dataclass(frozen=True)
class Timing:
    """One peer: seconds of a call, and how many were timed."""

    seconds: Spread
    calls: int
    rounds: int


@dataclass(frozen=True)
class Row:
    """One case and action.

    Attributes:
        flops: counted as the definition has them, two for each multiply-add, whatever is run.
        moved: bytes of inputs and outputs together.
        timings: by peer: auto, fastest, direct, end_to_end, pytorch, naive, sgemm, copy. Algorithms
            that run the same thing share one measurement.
        algorithms: what auto, fastest and direct ran.
        pytorch_over, naive_over: time of PyTorch, and of naive, over that of each of ours.
        of_sgemm: effective rate of each of ours as a fraction of the rate of sgemm.
        of_copy: bytes moved per second by each of ours as a fraction of the bandwidth of a copy.
        workspace: peak bytes beside the results, of ours and of naive.
    """

    case: str
    operation: str
    action: str
    convolution: bool
    compute_bound: bool
    flops: int
    moved: int
    timings: dict[str, Timing]
    algorithms: dict[str, str]
    pytorch_over: dict[str, Spread]
    naive_over: dict[str, Spread]
    of_sgemm: dict[str, Spread]
    of_copy: dict[str, Spread]
    workspace: dict[str, int]

    @property
    def memory_bound(self) -> bool:
        """Whether moving its bytes takes the machine longer than sgemm takes for its arithmetic."""
        return self.of_copy["auto"].median > self.of_sgemm["auto"].median

    @property
    def of_limit(self) -> float:
        """How close auto is to the limit that binds."""
        return (self.of_copy if self.memory_bound else self.of_sgemm)["auto"].median


@dataclass(frozen=True)
class Limits:
    """The peers that stand for the machine, and what one call of each does."""

    sgemm: Peer
    copy: Peer
    sgemm_flops: int
    copy_bytes: int
    threads: int


def measure(
    case: Case, action: str, limits: Limits, torch: ModuleType | None, budget: Budget
) -> Row:
    """Check and time every peer on one case."""
    tensors = inputs(case.tensors(), action)
    variants = ours.variants(case, action, tensors)
    distinct = {id(one): name for name, one in reversed(variants.items())}
    workspaces, expected = _workspaces(case, action, tensors, variants, limits.threads)
    peers = [Peer(name, variants[name].on(tensors)) for name in reversed(distinct.values())]
    if case.end_to_end:
        peers.append(Peer("end_to_end", ours.end_to_end(case, action, tensors)))
    if torch is not None:
        peers.append(_pytorch(torch, case, action, tensors, expected))
    baseline = naive.forward if action == "forward" else naive.backward
    peers += [Peer("naive", lambda: baseline(case, tensors)), limits.sgemm, limits.copy]
    samples = paired(peers, budget)
    for name, one in variants.items():
        samples[name] = samples[distinct[id(one)]]
    return _row(case, action, variants, samples, workspaces, limits)


def _workspaces(
    case: Case,
    action: str,
    tensors: Tensors,
    variants: dict[str, ours.Prepared],
    threads: int,
) -> tuple[dict[str, int], Tensors]:
    """Peak bytes of each peer that can be watched, and naive's outputs; raises PeersDisagree."""
    baseline = naive.forward if action == "forward" else naive.backward
    outputs, peak = memory.workspace(lambda: baseline(case, tensors))
    expected = dict(outputs)
    found = {"naive": peak}
    for name, one in variants.items():
        # Neither a helper's scratch nor anything kept for a parameter may be left from before.
        engine.set_threads(1)
        engine.set_threads(threads)
        fresh = {key: array.copy() for key, array in tensors.items()}
        results, found[name] = memory.workspace(one.on(fresh))
        _require_equal(case, action, name, ours.request(results, one.samples), expected)
    return found, expected


def _pytorch(
    torch: ModuleType, case: Case, action: str, tensors: Tensors, expected: Tensors
) -> Peer:
    call = pytorch.call(torch, case, action, tensors)
    _require_equal(case, action, "pytorch", pytorch.outputs(case, action, call()), expected)
    return Peer("pytorch", call)


def _require_equal(case: Case, action: str, name: str, found: Tensors, expected: Tensors) -> None:
    difference = pytorch.agree(found, expected)
    if not difference <= TOLERANCE:
        raise PeersDisagree(f"{case.name} {action}: {name} is off by {difference:.2g}")


def _row(
    case: Case,
    action: str,
    variants: dict[str, ours.Prepared],
    samples: dict[str, Samples],
    workspaces: dict[str, int],
    limits: Limits,
) -> Row:
    cost = variants["auto"].call.cost(variants["auto"].samples)
    moved = cost.input_bytes + cost.output_bytes
    own = [*variants, *(["end_to_end"] if case.end_to_end else [])]
    return Row(
        case=case.name,
        operation=case.operation,
        action=action,
        convolution=case.is_convolution,
        compute_bound=case.compute_bound,
        flops=cost.flops,
        moved=moved,
        timings={name: _timing(found) for name, found in samples.items()},
        algorithms={name: one.algorithm for name, one in variants.items()},
        pytorch_over=_over(samples, "pytorch", own),
        naive_over=_over(samples, "naive", own),
        of_sgemm=_over(samples, "sgemm", own, cost.flops / limits.sgemm_flops),
        of_copy=_over(samples, "copy", own, moved / limits.copy_bytes),
        workspace=workspaces,
    )


def _timing(found: Samples) -> Timing:
    return Timing(found.seconds, sum(map(len, found.bursts)), len(found.bursts))


def _over(
    samples: dict[str, Samples], peer: str, own: Sequence[str], share: float = 1
) -> dict[str, Spread]:
    """`share` of the peer's work over the whole of each of ours, in time."""
    if peer not in samples:
        return {}
    return {name: samples[peer].over(samples[name]).scaled(share) for name in own}
