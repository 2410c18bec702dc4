"""Calls: what to compute of a plan, and what that takes, before any data is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, TypeVar

import numpy as np

from engine.operation import Operation
from engine.plans import PARAMETERS, PER_SAMPLE, Action, Plan, TensorSpec, compute_dtype
from engine.registry import find

Made = TypeVar("Made")


@dataclass(frozen=True)
class Cost:
    """What a computation takes, from shapes alone.

    Attributes:
        flops: floating point operations, a multiply-add counted as 2.
        input_bytes, output_bytes: size of all tensors given and made.
        workspace_bytes: memory beside them on one thread. A tensor that begins between the addresses of
            its numbers is copied besides.
        steps: array operations that the interpreter starts: very long windows take many for little work.
    """

    flops: int
    input_bytes: int
    output_bytes: int
    workspace_bytes: int
    steps: int


@dataclass(frozen=True)
class Call:
    """What to compute: equal calls may share a batch if their parameters are equal too.

    `given` are the names and dtypes of the tensors that come with it.
    """

    operation: str
    action: Action
    wants: tuple[str, ...]
    plan: Plan
    given: tuple[tuple[str, str], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.operation, self.action, self.wants, self.plan, self.given))

    @property
    def dtype(self) -> str:
        """Dtype of the results."""
        return self.plan.dtype

    @property
    def groups(self) -> int:
        """Groups of channels that do not see each other, where the layer has such; 1 elsewhere."""
        return getattr(self.plan.config, "groups", 1)

    @cached_property
    def layer(self) -> Operation:
        """What computes it."""
        return find(self.operation)

    @cached_property
    def compute(self) -> np.dtype[Any]:
        """The dtype that arithmetic runs in."""
        return np.dtype(compute_dtype(self.dtype))

    @cached_property
    def rounded(self) -> bool:
        """True where results are rounded to another dtype in the end."""
        return compute_dtype(self.dtype) != self.dtype

    @cached_property
    def algorithm(self) -> str:
        """What makes its results, where their numbers do not ask for a plain sum."""
        again = self.plan.recomputed and self.action == "backward"
        return self.layer.algorithm(self.plan, (*self.wants, "y") if again else self.wants)

    @cached_property
    def taken(self) -> tuple[tuple[str, np.dtype[Any]], ...]:
        """Given tensors, and the dtypes that kernels take them in."""
        index = np.dtype(np.int64)
        return tuple((name, index if name == "indices" else self.compute) for name, _ in self.given)

    @cached_property
    def unsettled(self) -> tuple[str, ...]:
        """Outputs whose NaN the kernels leave with bits of any kind."""
        return tuple(name for name in self.wants if not self.layer.settles(self.plan, name))

    @cached_property
    def per_sample(self) -> tuple[str, ...]:
        """Given tensors that are joined along N in a batch."""
        return tuple(name for name, _ in self.given if name in PER_SAMPLE)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Given tensors that all requests of a batch share."""
        return tuple(name for name, _ in self.given if name in PARAMETERS)

    def outputs(self, rows: Sequence[int]) -> dict[str, TensorSpec]:
        """Joined outputs of requests with rows[i] samples each."""
        return self.make_outputs(rows, lambda _, shape, dtype: TensorSpec(shape, dtype))

    def make_outputs(
        self, rows: Sequence[int], make: Callable[[str, tuple[int, ...], str], Made]
    ) -> dict[str, Made]:
        """What `make` gives for the name, shape and dtype of each joined output.

        Per-sample outputs lie one request after another along N; gradients of parameters have a
        leading axis of requests.
        """
        samples, requests = sum(rows), len(rows)
        return {
            name: make(name, (samples if own else requests, *tail), dtype)
            for name, own, tail, dtype in self._wanted
        }

    @cached_property
    def _wanted(self) -> tuple[tuple[str, bool, tuple[int, ...], str], ...]:
        plan = self.plan
        return tuple(
            (name, name in PER_SAMPLE, plan.tail[name], plan.dtype_of(name)) for name in self.wants
        )

    def cost(self, samples: int) -> Cost:
        """What the call takes for one request of `samples` samples."""
        return _cost(self, samples)

    def info(self) -> dict[str, Any]:
        """What the response says about the computation."""
        return {
            "operation": self.operation,
            "action": self.action,
            "algorithm": self.algorithm,
            "padding": [list(pair) for pair in self.plan.padding],
        }


@lru_cache(maxsize=1024)
def _cost(call: Call, samples: int) -> Cost:
    plan = call.plan
    inputs = (TensorSpec(plan.shape(name, samples), dtype) for name, dtype in call.given)
    outputs = call.outputs((samples,)).values()
    return Cost(
        flops=plan.flops[call.action == "backward"] * samples,
        input_bytes=sum(spec.nbytes for spec in inputs),
        output_bytes=sum(spec.nbytes for spec in outputs),
        workspace_bytes=_workspace(call, samples),
        steps=plan.steps * -(-samples // plan.alike),
    )


def _workspace(call: Call, samples: int) -> int:
    plan, compute = call.plan, compute_dtype(call.dtype)
    size = call.layer.scratch_bytes(plan, call.action)
    for (name, given), (_, taken) in zip(call.given, call.taken, strict=True):
        # To ask a dtype for its name takes longer than to make one.
        if np.dtype(given) != taken:
            size += prod(plan.shape(name, samples)) * taken.itemsize
    if call.rounded:
        outputs = call.outputs((samples,)).values()
        size += sum(TensorSpec(s.shape, compute).nbytes for s in outputs if s.dtype != "int64")
    if plan.recomputed and call.action == "backward":
        size += TensorSpec(plan.shape("y", samples), compute).nbytes
    return size
