"""Which top-level key is what, in both formats."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import numpy as np
import pytest

from app.errors import MalformedBody
from app.wire import DecodeLimits, Exchange, PlanRequest, Request, decode, decode_plan
from app.wire.elements import NAMES as DTYPES
from app.wire.elements import TENSORS
from engine.errors import EngineError, InvalidValue, MissingField
from tests.app.wire.bodies import HOSTILE_DTYPES, JSON, LIMITS, MSGPACK, NAMES, tensor

FORMATS = pytest.mark.parametrize(
    ("exchange", "write"),
    [(MSGPACK, msgpack.packb), (JSON, lambda value: json.dumps(value).encode())],
    ids=["msgpack", "json"],
)


def read(exchange: Exchange, body: bytes, limits: DecodeLimits = LIMITS) -> Request:
    return decode(body, exchange, limits)


def plan(exchange: Exchange, body: bytes, limits: DecodeLimits = LIMITS) -> PlanRequest:
    return decode_plan(body, exchange, limits)


def issue(kind: type[Exception], call: Any, *args: Any) -> Any:
    with pytest.raises(kind) as caught:
        call(*args)
    assert type(caught.value) is kind
    assert isinstance(caught.value, EngineError | MalformedBody)
    (found,) = caught.value.issues
    return found


def test_every_tensor_that_a_request_can_bring() -> None:
    array = np.ones((1, 2), np.float32)
    request = read(MSGPACK, msgpack.packb({name: tensor(array) for name in TENSORS}))
    assert set(request.tensors) == set(TENSORS) == {"x", "weight", "bias", "indices", "dy"}
    assert request.extra == ()


@FORMATS
def test_what_nobody_knows_is_handed_on_by_name_and_not_read(
    exchange: Exchange, write: Any
) -> None:
    extra = {"y": 1, "dx": [[1], [2, 3]], "X": None, "shapes": {"x": [-1]}, "": {"a": "b"}}
    request = read(exchange, write(extra))
    assert request.extra == tuple(extra)
    assert not request.tensors


@pytest.mark.parametrize("call", [read, plan])
@pytest.mark.parametrize(
    "body", [b"", memoryview(b""), bytearray()], ids=lambda body: type(body).__name__
)
@pytest.mark.parametrize("exchange", [MSGPACK, JSON])
def test_nothing_is_told_to_be_nothing(call: Any, body: Any, exchange: Exchange) -> None:
    found = issue(MalformedBody, call, exchange, body)
    assert (found.msg, found.expected, found.got) == ("the body is empty", "a map", "0 bytes")


@FORMATS
def test_null_is_the_same_as_none(exchange: Exchange, write: Any) -> None:
    nothing = dict.fromkeys(("config", "wants", "x", "weight", "bias", "indices", "dy"))
    assert read(exchange, write(nothing)) == read(exchange, write({}))
    shapes: dict[str, Any] = {"shapes": {}}
    assert plan(exchange, write({"config": None} | shapes)) == plan(exchange, write(shapes))


@FORMATS
@pytest.mark.parametrize("config", [[], 0, 1, False, True, "", "{}", 1.5, [["stride", 1]]])
def test_config_is_a_map(exchange: Exchange, write: Any, config: Any) -> None:
    for call, more in ((read, {}), (plan, {"shapes": {}})):
        found = issue(InvalidValue, call, exchange, write({"config": config} | more))
        assert found.loc == ("config",)
        assert found.expected == "a map"


@FORMATS
def test_config_and_wants_are_handed_on_as_they_are(exchange: Exchange, write: Any) -> None:
    config = {"stride": -1, "nonsense": [True, None, 1.5, {"a": []}], "": "x"}
    for wants in ([], ["y", "y", 3], "dx", {"dx": True}, 7, False):
        request = read(exchange, write({"config": config, "wants": wants}))
        assert request.config == config
        assert request.wants == wants


@FORMATS
def test_a_plan(exchange: Exchange, write: Any) -> None:
    shapes = {"x": [0, 3, 8, 8], "weight": [4, 3, 3, 3], "zz": []}
    body = {"config": {"padding": "same"}, "shapes": shapes, "dtype": "<f8", "x": [1]}
    request = plan(exchange, write(body))
    assert request.config == {"padding": "same"}
    assert request.shapes == {"x": (0, 3, 8, 8), "weight": (4, 3, 3, 3), "zz": ()}
    assert request.dtype == "float64"
    assert request.extra == ("x",)


@FORMATS
def test_a_plan_has_float32_where_it_names_nothing(exchange: Exchange, write: Any) -> None:
    assert plan(exchange, write({"shapes": {}})).dtype == "float32"
    for name, short in NAMES.items():
        for spelling in (name, short, "<" + short, ">" + short, "|" + short):
            assert plan(exchange, write({"shapes": {}, "dtype": spelling})).dtype == name


@FORMATS
def test_a_plan_needs_shapes(exchange: Exchange, write: Any) -> None:
    bodies: list[dict[str, Any]] = [{}, {"shapes": None}, {"config": {}}]
    for body in bodies:
        assert issue(MissingField, plan, exchange, write(body)).loc == ("shapes",)
    for shapes in ([], 1, "x", [[1, 2]], True):
        assert issue(InvalidValue, plan, exchange, write({"shapes": shapes})).loc == ("shapes",)


@FORMATS
@pytest.mark.parametrize(
    ("shape", "loc"),
    [
        ([-1], (0,)),
        ([1, True], (1,)),
        ([1.0], (0,)),
        (["1"], (0,)),
        ([None], (0,)),
        ([2**31], (0,)),
        ([2**31 - 1] * 3, ()),
        ([1] * 9, ()),
        (5, ()),
        (None, ()),
        ("12", ()),
        ({}, ()),
    ],
    ids=repr,
)
def test_a_shape_of_a_plan_is_a_value(
    exchange: Exchange, write: Any, shape: Any, loc: tuple[int, ...]
) -> None:
    found = issue(InvalidValue, plan, exchange, write({"shapes": {"x": shape}}))
    assert found.loc == ("shapes", "x", *loc)


@FORMATS
def test_a_dtype_of_a_plan_is_a_value(exchange: Exchange, write: Any) -> None:
    for dtype in HOSTILE_DTYPES:
        found = issue(InvalidValue, plan, exchange, write({"shapes": {}, "dtype": dtype}))
        assert (found.loc, found.expected) == (("dtype",), ", ".join(DTYPES))


@FORMATS
def test_a_tensor_of_an_unknown_dtype_is_told_those_that_it_may_have(
    exchange: Exchange, write: Any
) -> None:
    floats, integers = list(NAMES)[:3], list(NAMES)[3:]
    for name in TENSORS:
        given = {"dtype": "uint16", "shape": [0], "data": b"" if exchange == MSGPACK else []}
        found = issue(MalformedBody, read, exchange, write({name: given}))
        taken = {"x": floats + integers, "indices": integers}.get(name, floats)
        assert (found.loc, found.expected) == ((name, "dtype"), ", ".join(taken))


@FORMATS
def test_limits_hold_in_a_plan(exchange: Exchange, write: Any) -> None:
    deep: Any = 1
    for _ in range(LIMITS.max_depth + 1):
        deep = [deep]
    for name in ("config", "shapes", "dtype"):
        found = issue(MalformedBody, plan, exchange, write({"shapes": {}} | {name: {"a": deep}}))
        assert found.loc[0] == name
    many = {"shapes": {f"t{n}": [1] for n in range(LIMITS.max_values)}}
    assert "too many values" in issue(MalformedBody, plan, exchange, write(many)).msg


@pytest.mark.parametrize("call", [read, plan])
@pytest.mark.parametrize(("exchange", "body"), [(MSGPACK, b"{}"), (JSON, b"\x80"), (JSON, b"")])
def test_a_body_in_the_other_format(call: Any, exchange: Exchange, body: bytes) -> None:
    assert issue(MalformedBody, call, exchange, body).msg
