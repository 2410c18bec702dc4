"""Plans and calls: everything about a computation that is known before any data is.

A plan is made of integers and names only. The number of samples is no part of it: requests with equal
plans can share a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from engine.threads import SCRATCH_BYTES

Action = Literal["forward", "backward"]
ACTIONS: tuple[Action, ...] = ("forward", "backward")

PER_SAMPLE = ("x", "y", "dx", "dy", "indices")
"""Tensors whose first axis is N; the others are parameters and their gradients."""

PARAMETERS = ("weight", "bias")


class TensorSpec(NamedTuple):
    """A tensor's shape and the name of its dtype, without its data."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Cost:
    """What a computation takes, from shapes alone.

    Attributes:
        flops: floating point operations, a multiply-add counted as 2.
        input_bytes, output_bytes: size of all tensors given and made.
        workspace_bytes: memory beside them on one thread.
        steps: tap copies that the interpreter has to start, for layers with very long windows.
    """

    flops: int
    input_bytes: int
    output_bytes: int
    workspace_bytes: int
    steps: int


@dataclass(frozen=True)
class Plan:
    """One layer on one shape of sample, resolved.

    Attributes:
        operation: name of the operation.
        config: the operation's config, read and checked.
        dtype: dtype of the result; float16 is computed in float32.
        tails: shape of every tensor, for per-sample tensors without N.
        padding: resolved (low, high) of each spatial axis.
        receptive_field: inputs from the first to the last that one output sees, along each axis.
        flops: of forward and of backward, for one sample.
        steps: tap copies that the interpreter starts for one sample.
        geometry: what the kernels need.
        scratch_bytes: temporaries of one thread, whatever the number of samples.
        recomputed: True where backward works out values before the activation once more.
    """

    operation: str
    config: Any
    dtype: str
    tails: tuple[tuple[str, tuple[int, ...]], ...]
    padding: tuple[tuple[int, int], ...]
    receptive_field: tuple[int, ...]
    flops: tuple[int, int]
    steps: int
    geometry: Any
    algorithm: str = "direct"
    recomputed: bool = False
    scratch_bytes: int = SCRATCH_BYTES

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.operation, self.config, self.dtype, self.tails))

    @cached_property
    def tail(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes by tensor name, for per-sample tensors without N."""
        return dict(self.tails)

    def shape(self, name: str, samples: int) -> tuple[int, ...]:
        """A tensor's whole shape."""
        return (samples, *self.tail[name]) if name in PER_SAMPLE else self.tail[name]

    def dtype_of(self, name: str) -> str:
        """A tensor's dtype."""
        return "int64" if name == "indices" else self.dtype


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

    @property
    def dtype(self) -> str:
        """Dtype of the results."""
        return self.plan.dtype

    @cached_property
    def per_sample(self) -> tuple[str, ...]:
        """Given tensors that are joined along N in a batch."""
        return tuple(name for name, _ in self.given if name in PER_SAMPLE)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Given tensors that all requests of a batch share."""
        return tuple(name for name, _ in self.given if name in PARAMETERS)

    def outputs(self, rows: Sequence[int]) -> dict[str, TensorSpec]:
        """Joined outputs of requests with rows[i] samples each.

        Per-sample outputs lie one request after another along N; gradients of parameters have a
        leading axis of requests.
        """
        samples, requests = sum(rows), len(rows)
        return {
            name: TensorSpec((samples if name in PER_SAMPLE else requests, *tail), dtype)
            for name, tail, dtype in self._wanted
        }

    @cached_property
    def _wanted(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        plan = self.plan
        return tuple((name, plan.tail[name], plan.dtype_of(name)) for name in self.wants)

    def cost(self, samples: int) -> Cost:
        """What the call takes for one request of `samples` samples."""
        plan = self.plan
        inputs = (TensorSpec(plan.shape(name, samples), dtype) for name, dtype in self.given)
        outputs = self.outputs((samples,)).values()
        return Cost(
            flops=plan.flops[self.action == "backward"] * samples,
            input_bytes=sum(spec.nbytes for spec in inputs),
            output_bytes=sum(spec.nbytes for spec in outputs),
            workspace_bytes=self._workspace(samples),
            steps=plan.steps * samples,
        )

    def _workspace(self, samples: int) -> int:
        compute = compute_dtype(self.dtype)
        size = self.plan.scratch_bytes
        for name, dtype in self.given:
            if name != "indices" and dtype != compute:
                size += TensorSpec(self.plan.shape(name, samples), compute).nbytes
        if self.dtype != compute:
            outputs = self.outputs((samples,)).values()
            size += sum(TensorSpec(s.shape, compute).nbytes for s in outputs if s.dtype != "int64")
        if self.plan.recomputed and self.action == "backward":
            size += TensorSpec(self.plan.shape("y", samples), compute).nbytes
        return size

    def info(self) -> dict[str, Any]:
        """What the response says about the computation."""
        return {
            "operation": self.operation,
            "action": self.action,
            "algorithm": self.plan.algorithm,
            "padding": [list(pair) for pair in self.plan.padding],
        }


def compute_dtype(dtype: str) -> str:
    """The dtype that arithmetic runs in: float16 and integers in float32."""
    return "float64" if dtype == "float64" else "float32"
