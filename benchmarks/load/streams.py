"""What is sent: the bodies of the benchmark, and streams of them.

A stream is a sequence of requests that connections go through in turn. Everything is made from
fixed seeds, so that each process can make it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

import engine

Tensors = Mapping[str, NDArray[Any]]

MEDIA_TYPE = "application/vnd.msgpack"

LAYERS = {
    "small": ((1, 3, 32, 32), (16, 3, 3, 3)),
    "middle": ((1, 64, 56, 56), (64, 64, 3, 3)),
    "large": ((8, 64, 112, 112), (64, 64, 3, 3)),
}
"""Shapes of x and weight of a convolution with padding 1."""

MIXED, UNLIKE = 32, 64
"""Requests in these streams before they repeat."""


@dataclass(frozen=True, eq=False)
class Request:
    """One request, and what its answer has to hold.

    Attributes:
        name: of the body. path: of the URL.
        head: request line and headers, without the empty line behind them.
        body: what follows.
        expected: the answer's tensors by name, computed by the engine in this process.
    """

    name: str
    path: str
    head: bytes
    body: bytes
    expected: Tensors


def stream(name: str) -> Sequence[Request]:
    """The stream of that name: `small-forward`, `large-backward`, …, `mixed` or `unlike`."""
    several = _SEVERAL.get(name)
    return [_convolution(name)] if several is None else several()


def names() -> list[str]:
    """All streams."""
    alike = [f"{size}-{action}" for size in LAYERS for action in engine_actions()]
    return [*alike, *_SEVERAL]


def engine_actions() -> tuple[str, str]:
    """The actions that compute."""
    return "forward", "backward"


def pack(tensors: Tensors, config: Mapping[str, object] | None = None) -> bytes:
    """A body in msgpack."""
    fields: dict[str, object] = {"config": dict(config)} if config else {}
    for name, array in tensors.items():
        fields[name] = {
            "dtype": array.dtype.name,
            "shape": array.shape,
            "data": np.ascontiguousarray(array).tobytes(),
        }
    packed: bytes = msgpack.packb(fields)
    return packed


def unpack_tensors(body: bytes | memoryview) -> dict[str, NDArray[Any]]:
    """The tensors of a body or an answer."""
    fields = msgpack.unpackb(body)
    return {
        name: np.frombuffer(value["data"], value["dtype"]).reshape(value["shape"])
        for name, value in fields.items()
        if isinstance(value, dict) and "data" in value
    }


def request(
    name: str, operation: str, action: str, config: Mapping[str, object], tensors: Tensors
) -> Request:
    """Make a request, and compute what its answer has to be."""
    path = f"/v1/{operation}/{action}"
    body = pack(tensors, config)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: load\r\nContent-Type: {MEDIA_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\n"
    )
    compute: Callable[..., Tensors] = getattr(engine, action)
    expected = compute(operation, dict(config), **tensors)
    return Request(name, path, head.encode(), body, expected)


@cache
def _convolution(name: str) -> Request:
    size, action = name.split("-")
    x_shape, weight_shape = LAYERS[size]
    random = np.random.default_rng(sum(map(ord, size)))
    tensors = {"x": _normal(random, x_shape), "weight": _normal(random, weight_shape)}
    if action == "backward":
        outputs = (*x_shape[:1], *weight_shape[:1], *x_shape[2:])
        tensors["dy"] = _normal(random, outputs)
    return request(name, "conv", action, {"padding": 1}, tensors)


@cache
def _mixed() -> Sequence[Request]:
    """Small and middle work of several operations, no two requests equal, in a fixed shuffle."""
    random = np.random.default_rng(7)
    made = [_MAKERS[number % len(_MAKERS)](random) for number in range(MIXED)]
    return [made[place] for place in random.permutation(MIXED)]


def _conv(random: np.random.Generator) -> Request:
    side = int(random.choice([16, 24, 32]))
    return request("mixed", "conv", "forward", {"padding": 1}, _own(random, (1, 3, side, side)))


def _conv_backward(random: np.random.Generator) -> Request:
    tensors = {
        "x": _normal(random, (2, 8, 16, 16)),
        "weight": _normal(random, (8, 8, 3, 3)),
        "dy": _normal(random, (2, 8, 16, 16)),
    }
    return request("mixed", "conv", "backward", {"padding": 1}, tensors)


def _pool(random: np.random.Generator) -> Request:
    tensors = {"x": _normal(random, (1, 16, 32, 32))}
    return request("mixed", "max_pool", "forward", {"kernel": 2}, tensors)


def _middle(random: np.random.Generator) -> Request:
    tensors = {"x": _normal(random, (1, 32, 28, 28)), "weight": _normal(random, (32, 32, 3, 3))}
    return request("mixed", "conv", "forward", {"padding": 1, "activation": "relu"}, tensors)


def _transposed(random: np.random.Generator) -> Request:
    tensors = {"x": _normal(random, (1, 8, 14, 14)), "weight": _normal(random, (8, 4, 3, 3))}
    return request("mixed", "conv_transpose", "forward", {"stride": 2}, tensors)


@cache
def _unlike() -> Sequence[Request]:
    """Small requests of which no two can share a call: all weights differ, and half of the shapes."""
    random = np.random.default_rng(11)
    sides = (32 if number % 2 else int(random.integers(12, 33)) for number in range(UNLIKE))
    config = {"padding": 1}
    return [
        request("unlike", "conv", "forward", config, _own(random, (1, 3, side, side)))
        for side in sides
    ]


def _own(random: np.random.Generator, shape: tuple[int, ...]) -> Tensors:
    return {"x": _normal(random, shape), "weight": _normal(random, LAYERS["small"][1])}


_SEVERAL = {"mixed": _mixed, "unlike": _unlike}

_MAKERS = (_conv, _pool, _conv_backward, _middle, _transposed, _conv, _pool, _conv)


def _normal(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return random.standard_normal(shape, dtype=np.float32)
