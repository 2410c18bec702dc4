"""What an operation is: a bundle of a config, rules about shapes, and two functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from engine.configs import config_schema, read_config
from engine.errors import EmptyOutput, Loc, MissingField, ShapeMismatch, fail
from engine.layouts import spatial_axis
from engine.options import Schema
from engine.plans import ACTIONS, Action, Plan

Array = NDArray[Any]
Tails = Mapping[str, tuple[int, ...]]
"""Shapes by tensor name, for per-sample tensors without N."""


class Operation(ABC):
    """One layer: its config, its tensors, its plan, forward and backward.

    Class attributes:
        name: as in the URL.
        summary: one line.
        config: the config dataclass.
        forward_inputs, backward_inputs: tensor names, True where required.
        examples: small configs with shapes, for documentation and smoke tests.
        meanings: of tensors, where `TENSORS` does not say what they are here.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    config: ClassVar[type[Any]]
    forward_inputs: ClassVar[Mapping[str, bool]]
    backward_inputs: ClassVar[Mapping[str, bool]]
    algorithms: ClassVar[tuple[str, ...]] = ("direct",)
    examples: ClassVar[tuple[Mapping[str, Any], ...]]
    meanings: ClassVar[Mapping[str, str]] = {}

    def inputs(self, action: Action) -> Mapping[str, bool]:
        """Tensor names of an action, True where required."""
        return self.forward_inputs if action == "forward" else self.backward_inputs

    def read_config(self, config: object, dims: int) -> Any:
        """The config, read and checked."""
        return read_config(self.config, config, dims)

    def schema(self) -> Schema:
        """The JSON Schema of the config."""
        return config_schema(self.config)

    def ranks(self) -> tuple[int, int]:
        """The smallest and the largest rank of x."""
        return 3, 5

    def leading(self, given: Mapping[str, tuple[int, ...]], config: object) -> str:  # noqa: ARG002
        """The given tensor that tells the dimensions and the number of samples."""
        return "x"

    def check_samples(self, config: Any, samples: int) -> None:  # noqa: B027
        """Check what the config says of the number of samples, which is no part of the plan."""

    @abstractmethod
    def plan(self, config: Any, tails: Tails, dtype: str) -> Plan:
        """Resolve the layer; raises an InvalidRequest for what does not fit together."""

    def algorithm(self, plan: Plan, made: Sequence[str]) -> str:  # noqa: ARG002
        """What makes these results: `winograd` if it makes any of them."""
        return plan.algorithm

    def forward_outputs(self, plan: Plan) -> tuple[str, ...]:  # noqa: ARG002
        """What forward answers with."""
        return ("y",)

    def outputs(self) -> tuple[str, ...]:
        """All that forward may answer with."""
        return ("y",)

    def gradients(self, given: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        """The gradients that backward gives by default, from the names of the given tensors."""
        return ("dx",)

    def wantable(self, given: Sequence[str]) -> tuple[str, ...]:
        """Everything that `wants` may name, given these tensors."""
        return (*(("y",) if "x" in given else ()), *self.gradients(given))

    def check(self, plan: Plan, tensors: Mapping[str, Array]) -> None:  # noqa: B027
        """Check what only the data can tell; raises InvalidIndices."""

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        """True if every NaN of an output is given its bits while the block around it is in the cache."""
        return False

    def scratch_bytes(self, plan: Plan, action: Action) -> int:  # noqa: ARG002
        """Temporaries of one thread in an action, whatever the number of samples."""
        return plan.scratch_bytes

    @abstractmethod
    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        """Write the outputs; arrays are contiguous in their own layout, in the compute dtype."""

    @abstractmethod
    def backward(
        self,
        plan: Plan,
        given: Mapping[str, Array],
        rows: Sequence[int],
        out: Mapping[str, Array],
    ) -> None:
        """Write the gradients asked for; `rows` are the samples of each request."""


class Parameterless(Operation):
    """An operation without parameters: its only gradient is that of x, whichever request a sample is of."""

    def backward(
        self,
        plan: Plan,
        given: Mapping[str, Array],
        rows: Sequence[int],  # noqa: ARG002
        out: Mapping[str, Array],
    ) -> None:
        if "y" in out:
            self.forward(plan, given, {"y": out["y"]})
        if "dx" in out:
            self.backward_input(plan, given, out["dx"])

    @abstractmethod
    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        """Write dx, the gradient of the loss with respect to x."""


TENSORS = {
    "x": "Input, in `layout`.",
    "weight": "Filters, in `weight_layout`.",
    "bias": "One value per output channel.",
    "indices": "Flat row-major position of each maximum in its unpadded spatial plane; -1 for none.",
    "dy": "Gradient of the loss with respect to y.",
    "y": "Output, in `layout`.",
    "dx": "Gradient of the loss with respect to x.",
    "dweight": "Gradient of the loss with respect to weight.",
    "dbias": "Gradient of the loss with respect to bias.",
}


def describe_tensors(operation: Operation) -> dict[str, dict[str, str]]:
    """Each tensor's meaning and its part in each action: required, optional or output."""
    found: dict[str, dict[str, str]] = {}
    meanings = {**TENSORS, **operation.meanings}
    for action in ACTIONS:
        inputs = operation.inputs(action)
        parts = {name: "required" if needed else "optional" for name, needed in inputs.items()}
        names = operation.outputs() if action == "forward" else operation.wantable(tuple(inputs))
        parts.update(dict.fromkeys(names, "output"))
        for name, part in parts.items():
            found.setdefault(name, {"description": meanings[name]})[action] = part
    return found


def require_tail(tails: Tails, name: str) -> tuple[int, ...]:
    """The shape of a tensor that the plan cannot do without; raises MissingField where it is not given."""
    if name not in tails:
        raise fail(MissingField, (name,), "required", f"the shape of {name}", None)
    return tails[name]


def require_output(
    out: Sequence[int], sizes: Sequence[int], needed: Sequence[int], channels_last: bool
) -> None:
    """Raise EmptyOutput for the first axis on which no window fits."""
    for axis, count in enumerate(out):
        if count < 1:
            loc: Loc = ("x", "shape", spatial_axis(axis, channels_last))
            raise fail(
                EmptyOutput,
                loc,
                "the output would be empty: no window fits along this axis",
                f"at least {needed[axis]}",
                sizes[axis],
            )


def require_groups(channels: int, groups: int, name: str, loc_axis: int) -> None:
    """Raise ShapeMismatch unless the channels divide into the groups."""
    if channels % groups:
        loc = (name, "shape", loc_axis)
        expected = f"a multiple of groups ({groups})"
        raise fail(ShapeMismatch, loc, "channels do not divide into groups", expected, channels)


def require_shape(name: str, got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raise ShapeMismatch unless the shapes are equal."""
    if got != expected:
        raise fail(ShapeMismatch, (name, "shape"), "wrong shape", str(list(expected)), list(got))
