"""What one request costs, from its plan, and the limits on that.

Pure: nothing is allocated before a request has passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from app.errors import LimitExceeded
from app.telling import sentences
from engine.errors import Issue


class Cost(Protocol):
    """What `Call.cost` tells of one request."""

    @property
    def flops(self) -> int: ...
    @property
    def input_bytes(self) -> int: ...
    @property
    def output_bytes(self) -> int: ...
    @property
    def workspace_bytes(self) -> int: ...
    @property
    def steps(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CostLimits:
    """What one request may cost.

    Attributes:
        output_bytes: of all its outputs.
        workspace_bytes: of what the computation needs besides inputs and outputs.
        flops: floating-point operations, one multiply-add being 2.
        tensor_bytes: of inputs and outputs together, which a worker holds at once.
        steps: array operations that the interpreter starts; very long windows take many for little work.
    """

    output_bytes: int
    workspace_bytes: int
    flops: int
    tensor_bytes: int
    steps: int


def tensor_bytes(cost: Cost) -> int:
    """Bytes of inputs and outputs together."""
    return cost.input_bytes + cost.output_bytes


def work(cost: Cost) -> float:
    """Time that a request takes, in floating-point operations that would take as long.

    A byte read or written takes about as long as one operation, and a step about 10,000.
    """
    return cost.flops + tensor_bytes(cost) + 1e4 * cost.steps


def check_cost(cost: Cost, limits: CostLimits) -> None:
    """Refuse a request that costs too much, before anything is allocated for it.

    Raises:
        LimitExceeded: with one issue for each limit that is exceeded.
    """
    table = (
        ("output_bytes", "bytes of output", cost.output_bytes, limits.output_bytes),
        ("workspace_bytes", "bytes of workspace", cost.workspace_bytes, limits.workspace_bytes),
        ("flops", "floating-point operations", cost.flops, limits.flops),
        (
            "tensor_bytes",
            "bytes of inputs and outputs together",
            tensor_bytes(cost),
            limits.tensor_bytes,
        ),
        ("steps", "array operations", cost.steps, limits.steps),
    )
    issues = [
        Issue(("cost", name), f"too many {what}", f"at most {most} {what}", value)
        for name, what, value, most in table
        if value > most
    ]
    if issues:
        raise LimitExceeded(sentences(issues), issues=issues)
