"""The engine on the arrays of a case: prepared once, then run; or from end to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import engine
from benchmarks.kernels.cases import Case, Tensors

ALGORITHMS = ("auto", "fastest", "direct")


@dataclass(frozen=True)
class Prepared:
    """A call on a case, resolved for one algorithm."""

    call: engine.Call
    samples: int

    @property
    def algorithm(self) -> str:
        """What runs."""
        return str(self.call.info()["algorithm"])

    def on(self, tensors: Tensors) -> Callable[[], Mapping[str, Any]]:
        """A call without arguments that computes on these arrays."""
        call, rows = self.call, (self.samples,)
        return lambda: engine.run(call, tensors, rows)


def prepare(case: Case, action: str, algorithm: str, tensors: Tensors) -> Prepared:
    """Resolve the case; operations that know one algorithm only are not asked for another."""
    specs = {name: engine.TensorSpec(a.shape, a.dtype.name) for name, a in tensors.items()}
    call, samples = engine.prepare(case.operation, action, config(case, algorithm), specs, None)
    return Prepared(call, samples)


def config(case: Case, algorithm: str) -> dict[str, Any]:
    """The engine's config."""
    choice = {"algorithm": algorithm} if case.operation in _with_algorithms() else {}
    return {**case.config, **choice}


@cache
def _with_algorithms() -> frozenset[str]:
    table = engine.operations().items()
    return frozenset(name for name, entry in table if "auto" in entry["algorithms"])


def variants(case: Case, action: str, tensors: Tensors) -> dict[str, Prepared]:
    """By algorithm asked for; those that would run what another one runs are that same object.

    Plain sums are the same for all; tiles are others for `fastest`, which looks at no numbers.
    """
    found: dict[str, Prepared] = {}
    by_work: dict[str, Prepared] = {}
    for algorithm in ALGORITHMS:
        one = prepare(case, action, algorithm, tensors)
        work = one.algorithm if one.algorithm == "direct" else algorithm
        found[algorithm] = by_work.setdefault(work, one)
    return found


def end_to_end(case: Case, action: str, tensors: Tensors) -> Callable[[], object]:
    """`engine.forward` or `engine.backward` as a program would call it."""
    settled = config(case, "auto")
    face: Callable[..., object] = engine.forward if action == "forward" else engine.backward
    return lambda: face(case.operation, settled, **tensors)


def request(outputs: Mapping[str, Any], samples: int) -> Tensors:
    """The outputs of a run as the one request behind them has them."""
    (found,) = engine.split(outputs, (samples,))
    return found
