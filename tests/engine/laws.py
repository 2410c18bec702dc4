"""What must hold of any operation: laws, which need no second implementation.

Each law takes a layer and raises AssertionError where the engine breaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import engine
from tests.engine.compare import assert_close, assert_same_bytes
from tests.engine.strategies import Arrays, Layer

STEP = 1e-6
"""Of finite differences; their error is about STEP squared plus rounding / STEP."""

SLACK = 2e-7
"""What finite differences are trusted to, relative to the numbers' size."""


def forward(layer: Layer, given: Arrays) -> np.ndarray:
    return engine.forward(layer.operation, layer.config, **given)["y"]


def backward(layer: Layer, given: Arrays, dy: np.ndarray) -> Arrays:
    tensors = {name: given[name] for name in layer.backward_names()}
    return engine.backward(layer.operation, layer.config, None, **tensors, dy=dy)


def alone(action: str, operation: str, config: dict[str, Any], tensors: Arrays) -> Arrays:
    """The answer to one request."""
    if action == "forward":
        return engine.forward(operation, config, **tensors)
    return engine.backward(operation, config, None, **tensors)


def inner(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.vdot(a, b))


def assert_equal_sums(left: float, right: float, size: float, slack: float = 1e-10) -> None:
    assert abs(left - right) <= slack * max(1.0, size), f"{left} is not {right}"


def size_of(a: np.ndarray, b: np.ndarray) -> float:
    """The scale of rounding errors in <a, b>."""
    return float(np.abs(a * b).sum())


def adjoint(layer: Layer) -> None:
    """<A x, dy> = <x, A' dy>, and the same with the weight in the place of x."""
    given = layer.given()
    y = forward(layer, given)
    dy = layer.dy(y)
    gradients = backward(layer, given, dy)
    samples = layer.samples if layer.config.get("grad_reduction") == "mean" else 1
    for name in ("x", "weight"):
        if name in given:
            factor = 1 if name == "x" else samples
            right = inner(given[name], gradients["d" + name]) * factor
            assert_equal_sums(inner(y, dy), right, size_of(y, dy))


def linearity(layer: Layer) -> None:
    """f(2a - 3b) = 2 f(a) - 3 f(b), in x and in the weight: bilinearity where there are both."""
    given, other = layer.given(), layer.given(salt=1)
    if "weight" in given:
        other["weight"] = np.roll(given["weight"], 1)
    for name in [n for n in ("x", "weight") if n in given]:
        second = given | {name: other[name]}
        mixed = given | {name: 2 * given[name] - 3 * other[name]}
        want = 2 * forward(layer, given) - 3 * forward(layer, second)
        assert_close({"y": forward(layer, mixed)}, {"y": want}, about=layer)


def differences(layer: Layer) -> None:
    """Every gradient along a random direction is the slope that finite differences show."""
    given = layer.given()
    y = forward(layer, given)
    reached = np.isfinite(y)  # a window over padding alone is minus infinity, whatever x is
    dy = np.where(reached, layer.dy(y), 0)
    gradients = backward(layer, given, dy)
    samples = layer.samples if layer.config.get("grad_reduction") == "mean" else 1
    for place, name in enumerate(n for n in given if "d" + n in gradients):
        way = layer.given(salt=place + 2)[name] if name == "x" else given[name][::-1]
        way = np.abs(way) + 0.25
        ahead = forward(layer, given | {name: given[name] + STEP * way})[reached]
        behind = forward(layer, given | {name: given[name] - STEP * way})[reached]
        slope = inner((ahead - behind) / (2 * STEP), dy[reached])
        claimed = inner(way, gradients["d" + name]) * (1 if name == "x" else samples)
        size = size_of(y[reached], dy[reached]) + size_of(way, gradients["d" + name])
        assert_equal_sums(slope, claimed, size, SLACK)


Action = tuple[str, Callable[[Layer, int, int, str], Arrays]]


def rough(tensors: Arrays) -> Arrays:
    """The tensors with full mantissas: sums of few bits are exact in any order and prove nothing."""
    factor = 0.7390851332151607
    return {
        name: a if name == "indices" else (a * factor).astype(a.dtype)
        for name, a in tensors.items()
    }


def forward_tensors(layer: Layer, salt: int, samples: int, dtype: str) -> Arrays:
    return rough(layer.given(dtype, salt, samples))


def backward_tensors(layer: Layer, salt: int, samples: int, dtype: str) -> Arrays:
    given = forward_tensors(layer, salt, samples, dtype)
    dy = layer.dy(forward(layer, given), salt)
    return {name: given[name] for name in layer.backward_names()} | rough({"dy": dy})


ACTIONS: tuple[Action, ...] = (("forward", forward_tensors), ("backward", backward_tensors))


def batched_as_alone(layer: Layer, rows: Sequence[int], dtype: str = "float32") -> None:
    """Requests joined in one call get the very bytes that each gets alone."""
    for action, tensors in ACTIONS:
        requests = [tensors(layer, salt, n, dtype) for salt, n in enumerate(rows)]
        calls = []
        for n, request in zip(rows, requests, strict=True):
            specs = {k: engine.TensorSpec(a.shape, str(a.dtype)) for k, a in request.items()}
            call, samples = engine.prepare(layer.operation, action, layer.config, specs)
            assert samples == n
            calls.append(call)
        assert len(set(calls)) == 1, "the number of samples is no part of a call"
        call = calls[0]
        joined = {k: np.concatenate([r[k] for r in requests]) for k in call.per_sample}
        joined |= {k: requests[0][k] for k in call.parameters}
        answers = engine.split(engine.run(call, joined, rows), rows)
        for request, answer in zip(requests, answers, strict=True):
            want = alone(action, layer.operation, layer.config, request)
            assert_same_bytes(answer, want, f"{action} of {layer} in rows {rows}")


def same_under_threads(layer: Layer, counts: Sequence[int], dtype: str = "float32") -> None:
    """The number of threads changes no bit."""
    for action, tensors in ACTIONS:
        request = tensors(layer, 0, max(1, layer.samples), dtype)
        found = []
        for count in counts:
            engine.set_threads(count)
            found.append(alone(action, layer.operation, layer.config, request))
        for answer in found[1:]:
            assert_same_bytes(answer, found[0], f"{action} of {layer} on {counts} threads")
