"""Nested lists of numbers in JSON: what contradicts itself, its type, or its shape."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import numpy as np
import pytest

from tests.app.wire.bodies import parse, refusal, value_of, x


@pytest.mark.parametrize(
    ("data", "loc", "got"),
    [
        ([[1, 2], [3]], (1,), "1 item"),
        ([[1, 2], [3, 4, 5]], (1,), "3 items"),
        ([[1], []], (1,), "0 items"),
        ([[[1, 2], [3, 4]], [[5, 6], [7]]], (1, 1), "1 item"),
        ([[[1], [2]], [[3], [4]], [[5]]], (2,), "1 item"),
        ([1, [2]], (0,), 1),
        ([[1], 2], (1,), 2),
        ([[1], None], (1,), "null"),
        ([[[1]], [2]], (1, 0), 2),
        ([[[1]], ["NaN"]], (1, 0), "NaN"),
    ],
    ids=repr,
)
def test_ragged_lists_are_named(data: Any, loc: tuple[int, ...], got: object) -> None:
    bare, whole = refusal(parse, {"x": data}), refusal(parse, x(data=data))
    assert "ragged" in bare.msg
    assert (bare.loc, bare.got) == (("x", *loc), got)
    assert whole.loc == ("x", "data", *loc)


@pytest.mark.parametrize(
    ("element", "got"),
    [
        (True, "a boolean"),
        (False, "a boolean"),
        (None, "null"),
        ({}, "a map"),
        ({"a": 1}, "a map"),
        ("1", "1"),
        ("", ""),
        ("nan", "nan"),
        ("inf", "inf"),
        ("Inf", "Inf"),
        ("+Infinity", "+Infinity"),
        (" NaN", " NaN"),
        ("NaN\0", "NaN\0"),
        ("\ud800", "\ud800"),
    ],
)
@pytest.mark.parametrize("name", ["float32", "int64"])
def test_elements_that_are_no_numbers(element: Any, got: str, name: str) -> None:
    data = [[1, 2], [3, element]]
    issue = refusal(parse, x(dtype=name, data=data))
    assert issue.loc == ("x", "data", 1, 1)
    assert issue.got == got
    if name == "float32":
        assert all(f'"{text}"' in str(issue.expected) for text in ("NaN", "Infinity", "-Infinity"))


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_are_integers_within_range(name: str) -> None:
    info = np.iinfo(name)
    ends = [int(info.min), int(info.max)]
    assert value_of(x(dtype=name, shape=[2], data=ends)).tolist() == ends
    for bad in (info.min - 1, info.max + 1, 10**30, -(10**400)):
        issue = refusal(parse, x(dtype=name, shape=[2], data=[0, int(bad)]))
        assert issue.loc == ("x", "data", 1)
        assert issue.expected == f"{info.min} to {info.max}, for {name}"
    for odd in (1.0, 0.5, 1e3, "NaN", "Infinity"):
        issue = refusal(parse, x(dtype=name, shape=[2], data=[0, odd]))
        assert (issue.loc, issue.got) == (("x", "data", 1), odd)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("float16", "65520"),
        ("float16", "1e5"),
        ("float32", "3.5e38"),
        ("float32", "-1e39"),
        ("float32", "1" + "0" * 39),
        ("float64", "1e400"),
        ("float64", "-1e999999999"),
        ("float64", "1" + "0" * 309),
        ("float32", "1" + "0" * 4000),
    ],
)
def test_a_number_too_large_is_refused_and_not_made_infinite(name: str, text: str) -> None:
    for others in ("1, 2", '"Infinity", "-Infinity"', '"NaN", 0.5'):
        body = f'{{"x": {{"dtype": "{name}", "shape": [3], "data": [{others}, {text}]}}}}'
        issue = refusal(parse, body)
        assert issue.loc == ("x", "data", 2)
        assert issue.expected == f"a number within the range of {name}"
        read = json.loads(text)
        assert issue.got == (
            "a number beyond the range of float64" if read in (inf, -inf) else read
        )


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ([2, 2], [1, 2, 3]),
        ([2, 2], [1, 2, 3, 4, 5]),
        ([2, 2], [[1, 2, 3, 4]]),
        ([2, 2], [[1], [2], [3], [4]]),
        ([2, 3], [[1, 2], [3, 4], [5, 6]]),
        ([4], [[1, 2], [3, 4]]),
        ([2, 2], []),
        ([2, 2], [[], []]),
        ([0, 3], [[], [], []]),
        ([2, 0], [[]]),
        ([0], [1]),
        ([], []),
        ([], [[1]]),
        ([2**31 - 1, 2**20], [1]),
    ],
    ids=repr,
)
def test_lists_fit_the_shape(shape: list[int], data: Any) -> None:
    issue = refusal(parse, x(shape=shape, data=data))
    assert issue.loc == ("x", "data")
    assert str(shape) in issue.expected
