"""float32 with `auto` is as exact as a direct float32 sum, within a factor of 8 in the worst number.

Errors are measured against float64. The direct sum is made here, tap by tap with a running float32
total over channels and taps, and nothing of it is the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import engine

FACTOR = 8

LAYERS: list[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ("3x3 of 512", {"padding": 1}, (1, 512, 14, 14), (64, 512, 3, 3)),
    ("3x3 of 256 to 512", {"padding": 1}, (1, 256, 8, 8), (512, 256, 3, 3)),
    ("3x3 of 64", {"padding": 1}, (1, 64, 56, 56), (64, 64, 3, 3)),
    ("1x1 of 512", {}, (1, 512, 14, 14), (128, 512, 1, 1)),
    ("5x5 of 128", {"padding": 2}, (1, 128, 14, 14), (32, 128, 5, 5)),
    ("stride 2", {"padding": 3, "stride": 2}, (1, 3, 56, 56), (64, 3, 7, 7)),
    ("depthwise", {"padding": 1, "groups": 512}, (1, 512, 20, 20), (512, 1, 3, 3)),
    ("signal", {"padding": "same"}, (1, 256, 200), (64, 256, 9)),
    ("volume", {"padding": 1}, (1, 64, 6, 9, 9), (32, 64, 3, 3, 3)),
]


def random(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def direct_sum(
    config: dict[str, Any], x: np.ndarray, w: np.ndarray, padding: list[list[int]]
) -> np.ndarray:
    """y by one multiplication and one rounded addition at a time, over channels, then taps."""
    stride, groups = config.get("stride", 1), config.get("groups", 1)
    padded = np.pad(x, [(0, 0), (0, 0), *padding])
    kernel = w.shape[2:]
    out = [(n - k) // stride + 1 for n, k in zip(padded.shape[2:], kernel, strict=True)]
    y = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    each = w.shape[0] // groups
    taps: Iterator[tuple[Any, ...]] = product(*map(range, kernel))
    for tap in taps:
        cut = tuple(
            slice(t, t + (n - 1) * stride + 1, stride) for t, n in zip(tap, out, strict=True)
        )
        seen = padded[(slice(None), slice(None), *cut)]
        for channel in range(w.shape[1]):
            inputs = np.repeat(seen[:, channel :: w.shape[1]], each, axis=1)
            factor = w[(slice(None), channel, *tap)].reshape(-1, *[1] * len(kernel))
            y += inputs * factor
    return y


def worst(got: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(got.astype(np.float64) - exact).max())


@pytest.mark.parametrize(("name", "config", "size", "taps"), LAYERS, ids=[n for n, *_ in LAYERS])
def test_forward(
    name: str, config: dict[str, Any], size: tuple[int, ...], taps: tuple[int, ...]
) -> None:
    x, w = random(1, size), random(2, taps)
    exact = engine.forward("conv", config, x=x.astype("f8"), weight=w.astype("f8"))["y"]
    padding = engine.plan("conv", config, {"x": size, "weight": taps}).report()["padding"]
    plain = direct_sum(config, x, w, padding)
    assert worst(direct_sum(config, x.astype("f8"), w.astype("f8"), padding), exact) < 1e-9
    auto = engine.forward("conv", config, x=x, weight=w)["y"]
    assert worst(auto, exact) <= FACTOR * worst(plain, exact), name


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
@pytest.mark.parametrize(("name", "config", "size", "taps"), LAYERS, ids=[n for n, *_ in LAYERS])
def test_gradients_against_direct_by_name(
    operation: str, name: str, config: dict[str, Any], size: tuple[int, ...], taps: tuple[int, ...]
) -> None:
    """The same for every tensor of both actions, measured against the engine's own plain sum."""
    if operation == "conv_transpose":
        config = {k: v for k, v in config.items() if k != "padding"}
        taps = (size[1], taps[0] // config.get("groups", 1), *taps[2:])
    x, w = random(3, size), random(4, taps)
    y = engine.forward(operation, config, x=x, weight=w)["y"]
    dy = random(5, y.shape)
    wide = {"x": x.astype("f8"), "weight": w.astype("f8"), "dy": dy.astype("f8")}
    wants = ["y", "dx", "dweight", "dbias"]
    exact = engine.backward(operation, config, wants, **wide)
    auto = engine.backward(operation, config, wants, x=x, weight=w, dy=dy)
    direct = engine.backward(
        operation, config | {"algorithm": "direct"}, wants, x=x, weight=w, dy=dy
    )
    for tensor in wants:
        allowed = FACTOR * worst(direct[tensor], exact[tensor])
        assert worst(auto[tensor], exact[tensor]) <= allowed, f"{tensor} of {name}"
