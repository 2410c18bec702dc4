"""How the time of a convolution grows with each of its sizes, over a decade."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.kernels import ours
from benchmarks.kernels.cases import Case, inputs
from benchmarks.kernels.timing import Budget, Peer, Spread, paired

BASE = Case("scaling", "conv", 4, 64, (28, 28), 64, 3, padding=1)

AXES: dict[str, tuple[Case, ...]] = {
    "N": tuple(dataclasses.replace(BASE, batch=n) for n in (1, 2, 3, 5, 10)),
    "H×W": tuple(dataclasses.replace(BASE, size=(s, s)) for s in (16, 22, 29, 38, 51)),
    "C": tuple(dataclasses.replace(BASE, channels=c) for c in (16, 32, 48, 80, 160)),
    "O": tuple(dataclasses.replace(BASE, outputs=o) for o in (16, 32, 48, 80, 160)),
}
"""What is varied around 4×64×28×28 → 64, 3×3, padding 1."""


@dataclass(frozen=True)
class Growth:
    """Times along one axis.

    Attributes:
        values: of the size that is varied.
        seconds: for each of them.
        exponent: p of the power law seconds ∝ value^p that fits best; 1 is linear.
    """

    axis: str
    action: str
    values: tuple[int, ...]
    seconds: tuple[Spread, ...]
    exponent: float


def value(axis: str, case: Case) -> int:
    """The size that `axis` varies."""
    sizes = {
        "N": case.batch,
        "H×W": case.size[0] * case.size[1],
        "C": case.channels,
        "O": case.outputs,
    }
    return sizes[axis]


def growth(axis: str, action: str, budget: Budget) -> Growth:
    """Time every size along one axis, with auto."""
    cases = AXES[axis]
    peers = []
    for case in cases:
        tensors = inputs(case.tensors(), action)
        call = ours.prepare(case, action, "auto", tensors).on(tensors)
        peers.append(Peer(str(value(axis, case)), call))
    samples = paired(peers, budget)
    values = tuple(value(axis, case) for case in cases)
    seconds = tuple(samples[str(v)].seconds for v in values)
    return Growth(axis, action, values, seconds, exponent(values, [s.median for s in seconds]))


def exponent(values: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of the straight line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
