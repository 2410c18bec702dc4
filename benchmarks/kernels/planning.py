"""What planning costs: for a shape that was never seen, and for one that was."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import engine
from benchmarks.kernels import ours
from benchmarks.kernels.cases import Case, inputs
from benchmarks.kernels.timing import Spread

SHAPES = 50
"""Inputs that are planned for, each wider than the one before."""


@dataclass(frozen=True)
class Planning:
    """Seconds of `engine.prepare`."""

    first: Spread
    repeated: Spread


def planning(case: Case) -> Planning:
    """Plan the forward of a case for ever wider inputs, each of them twice."""
    first: list[float] = []
    repeated: list[float] = []
    for more in range(1, SHAPES + 1):
        wider = dataclasses.replace(case, size=(*case.size[:-1], case.size[-1] + more))
        shapes_of = inputs(wider.shapes(), "forward")
        specs = {name: engine.TensorSpec(shape, "float32") for name, shape in shapes_of.items()}
        config = ours.config(wider, "auto")
        for found in (first, repeated):
            start = time.perf_counter()
            engine.prepare(wider.operation, "forward", config, specs)
            found.append(time.perf_counter() - start)
    return Planning(Spread.of(first), Spread.of(repeated))
