"""Elementwise activations as a layer of their own; the formulas are in `kernels/activations/`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.activation_option import ActivationKind, activation_schemas, require_held
from engine.arena import SCRATCH_BYTES
from engine.configs import LOC, fields_of
from engine.kernels.activations.table import Activation, activate, activate_backward
from engine.operation import Parameterless, Tails, require_tail
from engine.options import Schema
from engine.plans import Plan, compute_dtype

Array = NDArray[Any]

TOGETHER = 1 << 12
"""Numbers for which one step is counted, if samples have less."""


class ActivationOperation(Parameterless):
    """See the module."""

    name = "activation"
    summary = "An elementwise activation, by name."
    config = Activation
    forward_inputs: ClassVar[Mapping[str, bool]] = {"x": True}
    backward_inputs: ClassVar[Mapping[str, bool]] = {"x": True, "dy": True}
    examples = (
        {"config": {"name": "relu"}, "shapes": {"x": [1, 2, 4, 4]}},
        {"config": {"name": "elu", "alpha": 0.5}, "shapes": {"x": [2, 3, 5]}},
    )

    meanings: ClassVar[Mapping[str, str]] = {
        "x": "Input, samples first.",
        "y": "Output, in the shape of `x`.",
    }

    def read_config(self, config: object, dims: int) -> Activation:
        return ActivationKind().read_map(fields_of(config), LOC, dims)

    def schema(self) -> Schema:
        return {"type": "object", "required": ["name"], "oneOf": activation_schemas()}

    def ranks(self) -> tuple[int, int]:
        return 1, 8

    def plan(self, config: Activation, tails: Tails, dtype: str) -> Plan:
        x = require_tail(tails, "x")
        require_held(config, dtype, ("config",))
        dims = max(len(x) - 1, 0)
        count = prod(x)
        compute = compute_dtype(dtype)
        # Only to convert numbers is there scratch beside an activation's own rows.
        converting = SCRATCH_BYTES if compute != dtype else 0
        return Plan(
            operation=self.name,
            config=config,
            dtype=dtype,
            tails=(("x", x), ("y", x), ("dx", x), ("dy", x)),
            padding=((0, 0),) * dims,
            receptive_field=(1,) * dims,
            flops=(count, count),
            steps=1,
            alike=max(1, TOGETHER // max(1, count)),
            geometry=None,
            scratch_bytes=config.workspace_bytes(np.dtype(compute).itemsize) + converting,
        )

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        return True

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        activate(plan.config, given["x"], out["y"])

    def backward_input(self, plan: Plan, given: Mapping[str, Array], dx: Array) -> None:
        activate_backward(plan.config, given["x"], given["dy"], dx)


OPERATION = ActivationOperation()
