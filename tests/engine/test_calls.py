"""What a call says of itself before it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine

ONE_WAY = [
    ("conv", (64, 32), ("direct", "winograd", "direct")),
    ("conv", (64, 64), ("winograd", "winograd", "winograd")),
    ("conv_transpose", (32, 64), ("direct", "winograd", "winograd")),
    ("conv_transpose", (64, 32), ("winograd", "direct", "direct")),
]
"""Operation, the first axes of its weight, and what makes y, dx and dweight."""


@pytest.mark.parametrize(("operation", "channels", "runs"), ONE_WAY)
def test_the_algorithm_is_that_of_the_results_asked_for(
    operation: str, channels: tuple[int, int], runs: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(0)
    outer, inner = channels if operation == "conv" else channels[::-1]
    shapes = {"x": (2, inner, 56, 56), "weight": (*channels, 3, 3), "dy": (2, outer, 56, 56)}
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    specs = {name: (shape, "float32") for name, shape in shapes.items()}

    def made(name: str, algorithm: str) -> tuple[str, bytes]:
        config = {"padding": 1, "algorithm": algorithm}
        call, _ = engine.prepare(operation, "backward", config, specs, [name])
        found = engine.backward(operation, config, [name], **tensors)[name]
        return call.info()["algorithm"], found.tobytes()

    for name, run in zip(("y", "dx", "dweight"), runs, strict=True):
        (said, auto), (_, plain) = made(name, "auto"), made(name, "direct")
        assert said == run
        assert (auto == plain) == (run == "direct")


def test_it_is_winograd_if_one_of_them_is() -> None:
    specs: dict[str, Any] = {
        "x": ((2, 32, 56, 56), "float32"),
        "weight": ((64, 32, 3, 3), "float32"),
        "dy": ((2, 64, 56, 56), "float32"),
    }

    def said(action: str, wants: list[str] | None = None, **config: Any) -> str:
        given = specs if action == "backward" else {n: specs[n] for n in ("x", "weight")}
        call, _ = engine.prepare("conv", action, {"padding": 1, **config}, given, wants)
        return str(call.info()["algorithm"])

    assert said("forward") == said("backward", ["y"]) == said("backward", ["dweight"]) == "direct"
    assert said("backward", ["dx"]) == said("backward") == "winograd"
    assert said("backward", algorithm="direct") == "direct"
