"""Whoever computes asks in between whether to stop, so that nobody waits for what is not wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.errors import Stopped
from engine.kernels import turning
from engine.kernels.activations.table import BLOCK
from engine.operations import max_unpool

Tensors = dict[str, np.ndarray]


def _questions(
    operation: str, action: str, config: dict[str, Any], tensors: Tensors, most: int = 10**6
) -> int:
    """How often it was asked; from `most` times on the answer is yes."""
    specs = {name: engine.TensorSpec(a.shape, a.dtype.name) for name, a in tensors.items()}
    call, _ = engine.prepare(operation, action, config, specs)
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > most

    engine.run(call, tensors, stop=stop)
    return len(asked)


@pytest.mark.parametrize("action", ["forward", "backward"])
@pytest.mark.parametrize(
    ("operation", "config"),
    [
        ("lp_pool", {"kernel": 99, "p": 2.5}),
        ("lp_pool", {"kernel": 6_000_000, "p": 2.5}),
        ("max_pool", {"kernel": 99, "return_indices": True}),
        ("max_pool", {"kernel": 3, "ties": "all", "return_indices": True}),
        ("adaptive_max_pool", {"output_size": 1, "return_indices": True}),
        ("adaptive_max_pool", {"output_size": 1000, "return_indices": True}),
        ("adaptive_avg_pool", {"output_size": 1000}),
    ],
)
def test_pools_of_one_large_plane_are_stopped_in_between(
    operation: str, config: dict[str, Any], action: str
) -> None:
    tensors = {"x": np.ones((1, 1, 6_000_000), np.float32)}
    if action == "backward":
        tensors["dy"] = engine.forward(operation, config, **tensors)["y"]
    with pytest.raises(Stopped):
        _questions(operation, action, config, tensors, most=4)


@pytest.mark.parametrize("action", ["forward", "backward"])
def test_activations_are_stopped_between_blocks(action: str) -> None:
    tensors = {"x": np.ones((1, 1, 40 * BLOCK), np.float32)}
    if action == "backward":
        tensors["dy"] = tensors["x"]
    assert _questions("activation", action, {"name": "silu"}, tensors) >= 40
    with pytest.raises(Stopped):
        _questions("activation", action, {"name": "silu"}, tensors, most=4)


@pytest.mark.parametrize("action", ["forward", "backward"])
@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
def test_activations_inside_are_stopped_between_blocks(operation: str, action: str) -> None:
    tensors = {
        "x": np.ones((1, 1, 40 * BLOCK), np.float32),
        "weight": np.ones((1, 1, 1), np.float32),
    }
    if action == "backward":
        tensors["dy"] = tensors["x"]
    linear = _questions(operation, action, {}, tensors)
    assert _questions(operation, action, {"activation": "silu"}, tensors) >= linear + 40


@pytest.mark.parametrize("action", ["forward", "backward"])
def test_unpooling_of_one_large_plane_is_stopped_in_between(action: str) -> None:
    size = 40 * max_unpool.BLOCK
    values = "x" if action == "forward" else "dy"
    tensors: dict[str, np.ndarray] = {
        "indices": np.arange(size).reshape(1, 1, -1),
        values: np.ones((1, 1, size), np.float32),
    }
    assert _questions("max_unpool", action, {"output_size": size}, tensors) >= 40


def test_weights_of_another_order_are_laid_out_piece_by_piece() -> None:
    weight = np.arange(5 * turning.BLOCK, dtype=np.float32).reshape(-1, 4, 16)
    tensors = {"x": np.eye(4, 16, dtype=np.float32)[None], "weight": weight}
    flipped = {"flip_kernel": True}
    assert _questions("conv", "forward", flipped, tensors) >= 5 + _questions(
        "conv", "forward", {}, tensors
    )
    y = engine.forward("conv", flipped, **tensors)["y"]
    tensors["weight"] = np.ascontiguousarray(weight[..., ::-1])
    np.testing.assert_array_equal(y, engine.forward("conv", None, **tensors)["y"])
