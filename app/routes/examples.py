"""Requests that work, in JSON, from the catalogue's examples of configs and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import engine

_CYCLE = (0, 1, -2, 3, -1, 2, -3)
"""Small whole numbers of both signs: sums of their products are exact in every floating type."""


def example(operation: str, given: Mapping[str, Any], action: str) -> dict[str, Any]:
    """The body of a request.

    Args:
        given: `config` and `shapes` of what `forward` takes, from the catalogue.
        action: `forward`, `backward` or `plan`.
    """
    config, shapes = given["config"], dict(given["shapes"])
    if action == "plan":
        return {"config": config, "shapes": shapes, "dtype": "float32"}
    planned = engine.plan(operation, config, shapes)
    if action == "backward":
        shapes["dy"] = planned.report()["shapes"]["y"]
        inputs = engine.operations()[operation]["tensors"]
        shapes = {name: shape for name, shape in shapes.items() if "backward" in inputs[name]}
    return {"config": config} | {name: _tensor(name, shape) for name, shape in shapes.items()}


def _tensor(name: str, shape: Sequence[int]) -> dict[str, Any]:
    size = prod(shape)
    if name == "indices":
        # A pooled plane is no larger than the plane it came from, so these lie within that.
        plane = prod(shape[2:])
        return {"dtype": "int64", "shape": shape, "data": [i % plane for i in range(size)]}
    data = [_CYCLE[i % len(_CYCLE)] for i in range(size)]
    return {"dtype": "float32", "shape": shape, "data": data}
