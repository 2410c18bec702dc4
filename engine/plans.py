"""Plans: everything about a layer that is known before any data is.

A plan is made of integers and names only. The number of samples is no part of it: requests with equal
plans can share a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from engine.arena import SCRATCH_BYTES

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
        steps: array operations that the interpreter starts for a sample, or for `alike` of them together.
        geometry: what the kernels need.
        scratch_bytes: temporaries of one thread, whatever the number of samples; some actions of an
            operation have more (`Operation.scratch_bytes`).
        alike: samples that are so small that they share their steps.
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
    alike: int = 1
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


def compute_dtype(dtype: str) -> str:
    """The dtype that arithmetic runs in: float16 and integers in float32."""
    return "float64" if dtype == "float64" else "float32"
