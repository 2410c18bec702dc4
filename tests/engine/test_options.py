"""Config fields: what they accept, what they refuse, and what their schema says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import engine
from engine import errors
from engine.activation_option import ACTIVATION
from engine.configs import config_schema, read_config
from engine.layouts import SPATIAL, read_layout
from engine.options import (
    LARGEST,
    Choice,
    Flag,
    Integer,
    Letters,
    Number,
    Padding,
    PerAxis,
    Shape,
    option,
)

LOC = ("config", "field")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (PerAxis(1), 3, (3, 3)),
        (PerAxis(1), [3, 4], (3, 4)),
        (PerAxis(1, hole=True), [None, 4], (None, 4)),
        (PerAxis(1, hole=True), None, (None, None)),
        (Padding(("same",)), "same", "same"),
        (Padding(("same",)), 2, ((2, 2), (2, 2))),
        (Padding(("same",)), [1, 2], ((1, 1), (2, 2))),
        (Padding(("same",)), [[0, 1], [2, 3]], ((0, 1), (2, 3))),
        (Padding(("same",)), [[0, 1], 2], ((0, 1), (2, 2))),
        (Choice(("a", "b")), "b", "b"),
        (Flag(), True, True),
        (Integer(0), 0, 0),
        (Integer(-5, divides=True), -5, -5),
        (Integer(0), LARGEST, LARGEST),
        (Number(), 2, 2.0),
        (Number(), -0.5, -0.5),
        (Letters.of_samples(), "NHWC", "NHWC"),
        (Shape(), [0, 3, 4], (0, 3, 4)),
    ],
)
def test_reads(kind: Any, value: object, expected: object) -> None:
    assert kind.read(value, LOC, 2) == expected


def test_a_number_has_one_zero() -> None:
    """Calls are found again by equal configs, and a product with -0.0 has other bits."""
    assert math.copysign(1.0, Number().read(-0.0, LOC, 2)) == 1.0
    x = np.array([[[1.0, -1.0]]])
    answers = {
        engine.forward("activation", {"name": "leaky_relu", "alpha": alpha}, x=x)["y"].tobytes()
        for alpha in (-0.0, 0.0)
    }
    assert answers == {np.array([1.0, -0.0]).tobytes()}


@pytest.mark.parametrize(
    ("kind", "value", "loc"),
    [
        (PerAxis(1), 0, LOC),
        (PerAxis(1), True, LOC),
        (PerAxis(1), 1.0, LOC),
        (PerAxis(1), "1", LOC),
        (PerAxis(1), None, LOC),
        (PerAxis(1), [1], LOC),
        (PerAxis(1), [1, 2, 3], LOC),
        (PerAxis(1), [1, False], (*LOC, 1)),
        (PerAxis(1), [1, None], (*LOC, 1)),
        (PerAxis(1), LARGEST + 1, LOC),
        (Padding(("same",)), "full", LOC),
        (Padding(("same",)), -1, LOC),
        (Padding(("same",)), [1, -1], (*LOC, 1)),
        (Padding(("same",)), [[1, 2], [1, 2, 3]], (*LOC, 1)),
        (Padding(("same",)), [[1, 2], [1, True]], (*LOC, 1, 1)),
        (Padding(("same",)), [1, 2, 3, 4], LOC),
        (Choice(("a",)), "c", LOC),
        (Choice(("a",)), 1, LOC),
        (Flag(), 1, LOC),
        (Flag(), "true", LOC),
        (Integer(1), 0, LOC),
        (Integer(-5, divides=True), 0, LOC),
        (Integer(-5, divides=True), -6, LOC),
        (Number(), float("nan"), LOC),
        (Number(), float("inf"), LOC),
        (Number(), True, LOC),
        (Number(), "1", LOC),
        (Number(), 10**400, LOC),
        (Number(positive=True), 0, LOC),
        (Letters.of_samples(), 5, LOC),
        (Shape(), [1, 2], LOC),
        (Shape(), [1, 2, -3], (*LOC, 2)),
        (ACTIVATION, "swishy", LOC),
        (ACTIVATION, {"name": "swishy"}, (*LOC, "name")),
        (ACTIVATION, 5, LOC),
        (ACTIVATION, {"name": "elu", "alpha": "1"}, (*LOC, "alpha")),
        (ACTIVATION, {"name": "relu", "alpha": 1}, (*LOC, "alpha")),
        (ACTIVATION, {"alpha": 1}, (*LOC, "name")),
    ],
)
def test_refuses_with_the_path(kind: Any, value: object, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(errors.InvalidRequest) as caught:
        kind.read(value, LOC, 2)
    assert caught.value.issues[0].loc == loc
    assert caught.value.issues[0].expected is not None


@pytest.mark.parametrize(
    ("kind", "value", "dims", "msg", "expected"),
    [
        (
            Padding(("same",)),
            [1, 1],
            1,
            "wrong number of entries",
            "1 entry, an integer or [low, high] for each spatial axis, or one integer",
        ),
        (
            PerAxis(1),
            [1],
            2,
            "wrong number of entries",
            "2 entries, one per spatial axis, or one integer",
        ),
        (
            PerAxis(1),
            1.0,
            2,
            "not an integer",
            f"an integer from 1 to {LARGEST}, or one for each spatial axis",
        ),
        (
            PerAxis(1),
            0,
            2,
            "out of range",
            f"an integer from 1 to {LARGEST}, or one for each spatial axis",
        ),
        (PerAxis(1), [2, 0], 2, "out of range", f"an integer from 1 to {LARGEST}"),
        (
            PerAxis(1, hole=True),
            True,
            2,
            "not an integer",
            f"an integer from 1 to {LARGEST}, or null, or one for each spatial axis",
        ),
        (
            Padding(("same", "valid")),
            None,
            2,
            "not an integer",
            f"an integer from 0 to {LARGEST}, one or [low, high] for each spatial axis, "
            "or one of same, valid",
        ),
        (Number(positive=True), "2", 2, "not a number", "a finite number above 0"),
        (Number(positive=True), 0, 2, "not an acceptable number", "a finite number above 0"),
    ],
)
def test_says_what_is_wrong_and_what_is_right(
    kind: Any, value: object, dims: int, msg: str, expected: str
) -> None:
    with pytest.raises(errors.InvalidValue) as caught:
        kind.read(value, LOC, dims)
    (issue,) = caught.value.issues
    assert (issue.msg, issue.expected) == (msg, expected)


@dataclass(frozen=True)
class Example:
    size: tuple[int, ...] = option(PerAxis(1), "Size.")
    flag: bool = option(Flag(), "Flag.", False)
    name: str | None = option(Choice(("a", "b")), "Name.", None)


def test_a_config_has_its_defaults() -> None:
    assert read_config(Example, {"size": 2}, 2) == Example((2, 2), False, None)
    assert read_config(Example, {"size": 2, "name": None}, 1).name is None


def test_a_config_is_any_mapping() -> None:
    x = np.arange(8.0).reshape(1, 1, 8)
    found = engine.forward("max_pool", MappingProxyType({"kernel": 2}), x=x)
    assert found["y"].tolist() == [[[1, 3, 5, 7]]]


def test_a_config_reports_everything_that_is_wrong() -> None:
    with pytest.raises(errors.InvalidRequest) as caught:
        read_config(Example, {"flag": 1, "sise": 2}, 2)
    assert {issue.loc for issue in caught.value.issues} == {
        ("config", "sise"),
        ("config", "size"),
        ("config", "flag"),
    }


def test_one_kind_of_mistake_keeps_its_name() -> None:
    with pytest.raises(errors.MissingField):
        read_config(Example, None, 2)
    with pytest.raises(errors.UnknownField):
        read_config(Example, {"size": 1, "x": 1}, 2)
    with pytest.raises(errors.InvalidValue):
        read_config(Example, [], 2)


def test_null_is_no_default_where_the_field_has_another() -> None:
    with pytest.raises(errors.InvalidValue):
        read_config(Example, {"size": 1, "flag": None}, 2)


def test_the_schema_says_what_is_required_and_what_defaults_are() -> None:
    schema = config_schema(Example)
    assert schema["required"] == ["size"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["flag"]["default"] is False
    assert {"type": "null"} in schema["properties"]["name"]["anyOf"]
    assert all(field["description"] for field in schema["properties"].values())


PLAIN = [
    -6,
    -5,
    -1,
    0,
    1,
    2,
    LARGEST,
    LARGEST + 1,
    True,
    False,
    None,
    1.5,
    -0.5,
    "same",
    "relu",
    "",
    "NWC",
    "NCHW",
    "NDHWC",
    "NCWH",
    "xNCHW",
]
ENTRIES = [*PLAIN, *([value] * count for value in PLAIN for count in range(4)), [0, -1], [0, "1"]]
VALUES = [
    *PLAIN,
    *([entry] * count for entry in ENTRIES for count in range(7)),
    *([1, 2, entry] for entry in ENTRIES),
    *({"name": name} for name in PLAIN),
    *({"name": "elu", "alpha": value} for value in PLAIN),
    *({"name": "gelu", "approximate": value} for value in PLAIN),
    {},
    {"alpha": 1},
    {"name": "relu", "alpha": 1},
]
KINDS = [
    PerAxis(1),
    PerAxis(0, hole=True),
    Padding(("same", "full")),
    Choice(("same", "mean")),
    Flag(),
    Integer(1),
    Integer(-5, divides=True),
    Number(),
    Number(positive=True),
    Letters.of_samples(),
    Shape(),
    ACTIVATION,
]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_the_schema_takes_what_is_read_in_some_number_of_dimensions(kind: Any) -> None:
    schema = kind.schema()
    for value in VALUES:
        assert fits(schema, value) == any(is_read(kind, value, dims) for dims in (1, 2, 3)), value


def test_every_order_of_a_weights_axes_fits_its_schema_and_other_letters_do_not() -> None:
    schema = Letters.of_weights().schema()
    for spatial in SPATIAL.values():
        assert all(fits(schema, "".join(each)) for each in permutations("OI" + spatial))
    assert not any(fits(schema, text) for text in ("", "OI", "relu", "OIHWX", "OIDHWO"))


def is_read(kind: Any, value: object, dims: int) -> bool:
    try:
        read = kind.read(value, LOC, dims)
        if isinstance(kind, Letters):
            read_layout(read, dims)
    except errors.EngineError:
        return False
    return True


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value is valid, by those words of JSON Schema that the kinds use."""
    types = {
        "null": value is None,
        "boolean": type(value) is bool,
        "integer": type(value) is int,
        "number": type(value) in (int, float),
        "string": type(value) is str,
        "array": type(value) is list,
        "object": type(value) is dict,
    }
    rules: dict[str, Callable[[Any], bool]] = {
        "type": lambda name: types[name],
        "anyOf": lambda all_of_them: any(fits(each, value) for each in all_of_them),
        "enum": lambda names: type(value) is str and value in names,
        "pattern": lambda regex: type(value) is not str or re.search(regex, value) is not None,
        "const": lambda constant: type(value) is type(constant) and value == constant,
        "not": lambda other: not fits(other, value),
        "minimum": lambda least: value >= least,
        "maximum": lambda most: value <= most,
        "exclusiveMinimum": lambda bound: value > bound,
        "items": lambda each: all(fits(each, entry) for entry in value),
        "minItems": lambda least: len(value) >= least,
        "maxItems": lambda most: len(value) <= most,
        "properties": lambda known: all(fits(known.get(k, {}), v) for k, v in value.items()),
        "required": lambda names: set(names) <= set(value),
        "additionalProperties": lambda _: set(value) <= set(schema["properties"]),
    }
    said = ("description", "default", "examples")
    # The type comes first in every schema, so that the other words are asked of values of that type.
    return all(rules[word](given) for word, given in schema.items() if word not in said)
