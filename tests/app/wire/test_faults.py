"""What parses as JSON and is refused all the same, and where it is."""

from __future__ import annotations

import json
import sys
import tracemalloc
from math import nan
from types import FrameType
from typing import Any

import pytest

from app.wire import faults
from app.wire.faults import MOST_STEPS
from tests.app.wire.bodies import parse, refusal

TEXTS = 'the texts "NaN", "Infinity" and "-Infinity"'
FINITE = "a finite number"
DIGITS = "at most 4300 digits"


@pytest.mark.parametrize(
    ("body", "loc", "expected", "got"),
    [
        # The literals that JSON does not have.
        ("NaN", (), FINITE, "NaN"),
        ('{"x": NaN}', ("x",), TEXTS, "NaN"),
        ('{"x": [1, Infinity]}', ("x", 1), TEXTS, "Infinity"),
        ('{"x": [[1, 2], [3, -Infinity], [NaN]]}', ("x", 1, 1), TEXTS, "-Infinity"),
        ('{"config": {"stride": 1, "p": NaN}, "x": [1]}', ("config", "p"), FINITE, "NaN"),
        ('{"shapes": {"x": [1, Infinity]}}', ("shapes", "x", 1), FINITE, "Infinity"),
        ('{"x": {"shape": [[], {}, {"a": [NaN]}]}}', ("x", "shape", 2, "a", 0), FINITE, "NaN"),
        ('{"x": {"shape": [1], "data": [NaN]}}', ("x", "data", 0), TEXTS, "NaN"),
        ('{"a": [[1], [[]], [{}]], "b": NaN}', ("b",), FINITE, "NaN"),
        # More digits than an integer may have.
        ('{"x": [%s]}' % ("1" * 5000), ("x", 0), DIGITS, "5000 digits"),
        ('{"config": {"groups": -%s}}' % ("9" * 4301), ("config", "groups"), DIGITS, "4301 digits"),
        # The same key twice.
        ('{"x": [1], "x": [1]}', ("x",), None, None),
        ('{"config": {"stride": 1, "stride": 2}, "x": [1]}', ("config", "stride"), None, None),
        ('{"other": {"a": 1, "\\u0061": 1}}', ("other", "a"), None, None),
        ('{"x": {"data": [1], "data": [2]}}', ("x", "data"), None, None),
        ('{"wants": [1, {"a": 1, "a": 2}]}', ("wants", 1, "a"), None, None),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_what_is_refused_has_its_place(
    body: str, loc: tuple[Any, ...], expected: str | None, got: str | None
) -> None:
    issue = refusal(parse, body)
    assert (issue.loc, issue.expected, issue.got) == (loc, expected, got)


@pytest.mark.parametrize("fault", ["NaN", '{"a": 1, "a": 2}', "1" * 5000])
def test_before_what_is_no_json_a_fault_is_told_without_its_place(fault: str) -> None:
    issue = refusal(parse, f'{{"x": [1, {fault}], ')
    assert issue.loc == ()
    assert "this is not JSON" not in issue.msg


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        # What stands in texts is no sign, and no number.
        (json.dumps({"a": "NaN ]}\\", 'b"[,{': [{"c": 'I,"'}, 0, nan]}), ('b"[,{', 2)),
        (json.dumps({"[": {'"': "\\"}, "\u00e9\n": ["1" * 5000, nan]}), ("\u00e9\n", 1)),
        ('{"a": {}, "b": {"}": {}, "c": [{}, {"d": 1, "d": 2}]}}', ("b", "c", 1, "d")),
        # A map or a list that has ended is one value.
        ('{"a": [[1, 2], {"b": [3, 4], "c": 5}, [6, [7, Infinity]]]}', ("a", 2, 1, 1)),
        # These are read as numbers with fractions, or as exponents.
        (
            f'{{"x": [1.{"1" * 5000}, 1e{"0" * 5000}, {"1" * 5000}.5, -{"1" * 5000}]}}',
            ("x", 3),
        ),
        ('{"\u00fc": "\u20ac", "x": [-Infinity]}', ("x", 0)),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_its_place_is_read_off_the_text(body: str, loc: tuple[Any, ...]) -> None:
    assert refusal(parse, body).loc == loc


@pytest.mark.parametrize("fault", ["NaN", '{"a": 1, "a": 2}', "1" * 5000])
def test_what_stands_before_it_costs_no_step_of_python(fault: str) -> None:
    def steps(count: int) -> int:
        lines = 0

        def traced(frame: FrameType, event: str, _arg: object) -> Any:
            nonlocal lines
            lines += event == "line" and frame.f_globals["__name__"] == faults.__name__
            return traced

        body = f'{{"x": [{"[[1]]," * count} {fault}]}}'
        before = sys.gettrace()
        sys.settrace(traced)
        try:
            issue = refusal(parse, body)
        finally:
            sys.settrace(before)
        assert issue.loc[:2] == ("x", count)
        return lines

    assert 0 < steps(2000) == steps(20)


def test_a_long_path_is_cut() -> None:
    deep = '{"%s": ' % ("k" * 500)
    issue = refusal(parse, deep * 400 + "NaN" + "}" * 400)
    assert issue.loc == ("k" * 64,) * MOST_STEPS


def test_it_is_found_among_many_without_a_place_for_each() -> None:
    count = 60_000
    body = '{"x": [' + "[[1]]," * count + "[[NaN]]]}"
    assert refusal(parse, body).loc == ("x", count, 0, 0)
    tracemalloc.start()
    try:
        refusal(parse, body)
        parsed = count * 2 * 100
        assert tracemalloc.get_traced_memory()[1] < parsed + len(body) + (2 << 20)
    finally:
        tracemalloc.stop()


def test_the_first_of_very_many_is_found_and_takes_no_memory_for_each() -> None:
    count = 100_000
    body = f'{{"x": [{",".join(["NaN"] * count)}]}}'
    assert refusal(parse, body).loc == ("x", 0)
    tracemalloc.start()
    try:
        refusal(parse, body)
        assert tracemalloc.get_traced_memory()[1] < count * 32 + len(body)
    finally:
        tracemalloc.stop()


def test_the_first_of_many_long_integers_is_found() -> None:
    assert refusal(parse, f'{{"x": [1, {",".join(["1" * 4301] * 1100)}]}}').loc == ("x", 1)


def test_it_is_found_before_an_integer_of_too_many_digits() -> None:
    assert refusal(parse, '{"x": [NaN, %s]}' % ("9" * 4400)).loc == ("x", 0)


def test_it_is_not_found_where_no_json_follows() -> None:
    assert refusal(parse, '{"x": [NaN], "y": ').loc == ()
