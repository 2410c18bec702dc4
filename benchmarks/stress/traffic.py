"""Recorded requests over all operations, and the tensors that each must be answered with, bit by bit.

Everything comes from fixed seeds; the expected tensors are what the engine computes for each request
alone, on one thread of this process.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

import engine
from benchmarks.stress.client import Reply

Tensors = Mapping[str, NDArray[Any]]

MSGPACK = "application/vnd.msgpack"
JSON = "application/json"

CASES: Sequence[tuple[str, dict[str, Any], dict[str, tuple[int, ...]], str]] = (
    ("conv", {"padding": 1}, {"x": (2, 3, 16, 16), "weight": (8, 3, 3, 3)}, "float32"),
    ("conv", {"padding": 1}, {"x": (1, 3, 16, 16), "weight": (8, 3, 3, 3)}, "float32"),
    ("conv", {"padding": 1}, {"x": (1, 32, 28, 28), "weight": (32, 32, 3, 3)}, "float32"),
    (
        "conv",
        {"stride": 2, "padding": "same", "activation": "relu", "layout": "NHWC"},
        {"x": (3, 11, 13, 4), "weight": (3, 3, 4, 6), "bias": (6,)},
        "float32",
    ),
    (
        "conv",
        {"groups": 4, "dilation": 2, "padding": 2, "padding_mode": "circular"},
        {"x": (2, 4, 9, 9), "weight": (8, 1, 3, 3)},
        "float64",
    ),
    ("conv", {"padding": "causal"}, {"x": (4, 2, 33), "weight": (5, 2, 4)}, "float16"),
    ("conv", {"stride": 2}, {"x": (1, 2, 7, 8, 9), "weight": (3, 2, 3, 2, 3)}, "float32"),
    ("conv", {"algorithm": "fastest"}, {"x": (1, 8, 20, 20), "weight": (8, 8, 5, 5)}, "float32"),
    (
        "conv_transpose",
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"x": (2, 6, 7, 7), "weight": (6, 4, 3, 3), "bias": (4,)},
        "float32",
    ),
    ("conv_transpose", {"padding": "same", "stride": 3}, {"x": (1, 2, 12), "weight": (2, 3, 5)}, "float64"),
    (
        "max_pool",
        {"kernel": 3, "stride": 2, "padding": 1, "return_indices": True},
        {"x": (2, 3, 15, 15)},
        "float32",
    ),
    ("max_pool", {"kernel": 2, "ties": "all"}, {"x": (4, 2, 10)}, "float64"),
    ("avg_pool", {"kernel": 3, "padding": 1, "count_include_pad": False}, {"x": (2, 4, 9, 9)}, "float32"),
    ("avg_pool", {"kernel": 2, "ceil_mode": True}, {"x": (1, 2, 5, 7, 6)}, "float16"),
    ("lp_pool", {"kernel": 2, "p": 3.0}, {"x": (3, 2, 8, 8)}, "float32"),
    ("adaptive_max_pool", {"output_size": [3, 4]}, {"x": (2, 3, 10, 11)}, "float32"),
    ("adaptive_avg_pool", {"output_size": 1}, {"x": (5, 3, 12, 12)}, "float64"),
    ("activation", {"name": "gelu"}, {"x": (4, 3, 32)}, "float32"),
    ("activation", {"name": "elu", "alpha": 0.5}, {"x": (4, 3, 8, 8)}, "float64"),
)  # fmt: skip
"""Operation, config, shapes of the tensors and dtype of each recorded layer."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """One request, and what it must be answered with.

    Attributes:
        name: of the request. form: its encoding, `msgpack`, `msgpack-numpy`, `json` or `base64`.
        headers: that it is sent with.
        expected: dtype, shape and bytes of each tensor of the answer.
    """

    name: str
    form: str
    path: str
    body: bytes
    headers: dict[str, str]
    expected: dict[str, tuple[str, tuple[int, ...], bytes]]

    def fits(self, reply: Reply) -> bool:
        """Whether an answer has the expected tensors, bit by bit, and no others."""
        return reply.status == 200 and tensors(reply) == self.expected


@cache
def recorded(forms: tuple[str, ...] = ("msgpack", "msgpack-numpy", "base64")) -> list[Recorded]:
    """All recorded requests, their encodings taken in turn."""
    engine.set_threads(1)
    made: list[Recorded] = []
    for seed, (operation, config, shapes, dtype) in enumerate(CASES):
        given = _noise(shapes, dtype, seed)
        forward = engine.forward(operation, config, **given)
        made.append(
            _record(operation, "forward", config, given, forward, forms[len(made) % len(forms)])
        )
        given["dy"] = _noise({"dy": forward["y"].shape}, dtype, seed + 1000)["dy"]
        backward = engine.backward(operation, config, None, **given)
        made.append(
            _record(operation, "backward", config, given, backward, forms[len(made) % len(forms)])
        )
    return [*made, _unpooling(forms[0])]


def _unpooling(form: str) -> Recorded:
    """Unpooling needs indices that a pooling made."""
    x = _noise({"x": (2, 3, 8, 8)}, "float32", 99)["x"]
    pooled = engine.forward("max_pool", {"kernel": 2, "return_indices": True}, x=x)
    given = {"x": pooled["y"], "indices": pooled["indices"]}
    config = {"output_size": [8, 8]}
    outputs = engine.forward("max_unpool", config, **given)
    return _record("max_unpool", "forward", config, given, outputs, form)


def _noise(shapes: Mapping[str, tuple[int, ...]], dtype: str, seed: int) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def _record(
    operation: str, action: str, config: dict[str, Any], given: Tensors, outputs: Tensors, form: str
) -> Recorded:
    json_form = form in ("json", "base64")
    parts = {name: write(array, form) for name, array in given.items()} | {"config": config}
    media, accept = (JSON, JSON) if json_form else (MSGPACK, MSGPACK)
    if form in ("msgpack-numpy", "base64"):
        accept += f"; tensors={form}"
    return Recorded(
        f"{operation} {action} {outputs[next(iter(outputs))].shape} {form}",
        form,
        f"/v1/{operation}/{action}",
        json.dumps(parts).encode() if json_form else msgpack.packb(parts),
        {"Content-Type": media, "Accept": accept},
        {name: (array.dtype.name, array.shape, array.tobytes()) for name, array in outputs.items()},
    )


def write(array: NDArray[Any], form: str) -> Any:
    """A tensor in one of the encodings."""
    data = array.tobytes()
    if form == "json":
        return {"dtype": array.dtype.name, "shape": array.shape, "data": array.ravel().tolist()}
    if form == "msgpack-numpy":
        parts = {"nd": True, "type": array.dtype.str, "kind": b"", "shape": array.shape}
        return {key.encode(): value for key, value in {**parts, "data": data}.items()}
    text = base64.b64encode(data).decode() if form == "base64" else data
    return {"dtype": array.dtype.name, "shape": array.shape, "data": text}


def packed(config: Mapping[str, Any] | None = None, **given: NDArray[Any]) -> bytes:
    """A request's body in msgpack."""
    parts: dict[str, Any] = {name: write(array, "msgpack") for name, array in given.items()}
    made: bytes = msgpack.packb(parts if config is None else {**parts, "config": dict(config)})
    return made


def tensors(reply: Reply) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Dtype, shape and bytes of each tensor of an answer, whatever its encoding."""
    is_json = reply.headers["content-type"].startswith(JSON)
    parts = json.loads(reply.body) if is_json else msgpack.unpackb(reply.body, strict_map_key=False)
    return {name: _read(value) for name, value in parts.items() if name != "info"}


def _read(value: dict[Any, Any]) -> tuple[str, tuple[int, ...], bytes]:
    named = {key.decode() if isinstance(key, bytes) else key: part for key, part in value.items()}
    dtype = np.dtype(named.get("dtype") or named["type"])
    shape, data = tuple(named["shape"]), named["data"]
    if isinstance(data, str):
        data = base64.b64decode(data, validate=True)
    elif isinstance(data, list):
        data = np.array(data, dtype).tobytes()
    return dtype.name, shape, data


def large(gflop: float = 13.0) -> bytes:
    """A request that takes a good while: so many thousand million operations, by plain sums."""
    outputs = round(gflop * 1e9 / (2 * 256 * 256 * 16 * 15 * 15))
    random = np.random.default_rng(0)
    x = random.standard_normal((1, 16, 256, 256), np.float32)
    weight = random.standard_normal((max(outputs, 1), 16, 15, 15), np.float32)
    return packed({"algorithm": "direct", "padding": 7}, x=x, weight=weight)
