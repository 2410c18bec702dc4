"""What a call says of itself before it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.kernels.winograd import filtering, tile_costs

ONE_WAY = [
    ("conv", (64, 32), ("direct", "winograd", "direct")),
    ("conv", (64, 64), ("winograd", "winograd", "winograd")),
    ("conv_transpose", (32, 64), ("direct", "winograd", "winograd")),
    ("conv_transpose", (64, 32), ("winograd", "direct", "direct")),
]
"""Operation, the first axes of its weight, and what makes y, dx and dweight."""


@pytest.fixture(autouse=True)
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which layers go by tiles does not depend on this machine's BLAS here."""
    monkeypatch.setattr(tile_costs, "COSTS", tile_costs.IN_PLACE)
    monkeypatch.setattr(filtering, "LEAST_WORK", 0)


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


@pytest.mark.parametrize("shape", [(), (3, 2)])
def test_activations_of_a_few_numbers_share_their_steps(shape: tuple[int, ...]) -> None:
    def steps(samples: int) -> int:
        specs = {"x": ((samples, *shape), "float32")}
        call, _ = engine.prepare("activation", "forward", {"name": "relu"}, specs)
        return call.cost(samples).steps

    one = steps(1)
    assert one >= 1
    assert steps(100) == one
    assert 100_000 * one > steps(100_000) > one
    assert steps(200_000) == pytest.approx(2 * steps(100_000), rel=0.1)


def test_samples_of_many_numbers_share_nothing() -> None:
    specs = {"x": ((7, 64, 128, 128), "float32")}
    seven, _ = engine.prepare("max_pool", "forward", {"kernel": 2}, specs)
    assert seven.cost(7).steps == 7 * seven.cost(1).steps
