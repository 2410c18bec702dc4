"""JSON bodies that are small to send and large, or deep, to build."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from app.errors import LimitExceeded, MalformedBody, ServiceError
from app.wire.read_json import MOST_LEVELS
from engine.errors import InvalidValue
from tests.app.limits import decode_limits
from tests.app.wire import cases
from tests.app.wire.bodies import LIMITS, parse, refusal, x
from tests.app.wire.cases import Refused


@pytest.mark.parametrize("depth", [LIMITS.max_depth + 1, 200, 990, 5000, 10**6])
@pytest.mark.parametrize("name", ["config", "x", "wants", "other"])
def test_deep_lists(depth: int, name: str) -> None:
    body = f'{{"{name}": {"[" * depth}{"]" * depth}}}'
    if name == "other" and depth < MOST_LEVELS:
        assert parse(body).extra == ("other",)
    elif name == "config":
        # Refused for its depth where it is read at all, else for not being a map.
        assert refusal(parse, body).msg
    elif name == "x" and depth < MOST_LEVELS:
        with pytest.raises(InvalidValue, match="nest too deeply"):
            parse(body)
    else:
        assert refusal(parse, body).msg


@pytest.mark.parametrize("frames", [0, 300])
@pytest.mark.parametrize("before", ["", "[ ", " "])
@pytest.mark.parametrize("beside", ["", ', "]]"', r', "\"[", "\\", "[\\\""', ", [], {}"])
def test_how_deep_lists_may_be_does_not_depend_on_who_reads_them(
    frames: int, before: str, beside: str
) -> None:
    def read(body: str, frames: int) -> Any:
        return read(body, frames - 1) if frames else parse(body)

    within = 2 + before.count("[")  # the body and the list of what is beside it
    after = before.replace("[", "]")
    for levels in (MOST_LEVELS - within, MOST_LEVELS - within + 1, 600, 980):
        lists = f"{before}{'[' * levels}1{']' * levels}{after}"
        body = f'{{"x": [{lists}{beside}]}}'
        kind = InvalidValue if levels + within <= MOST_LEVELS and not beside else MalformedBody
        with pytest.raises(kind) as refused:
            read(body, frames)
        error: Any = refused.value
        deep = error.issues[0].msg == "the values nest too deeply"
        assert deep == (levels + within > MOST_LEVELS)
        assert not deep or str(MOST_LEVELS) in str(error.issues[0].expected)


@pytest.mark.parametrize("end", ["", "\\"])
def test_a_string_without_an_end_is_looked_through_once(end: str) -> None:
    # Not from each of its quotes anew, as where it is no string and its brackets are lists.
    body = '["' + "[" * (MOST_LEVELS + 1) + '\\"' * (1 << 14) + end
    assert refusal(parse, body).msg.startswith("this is not JSON: Unterminated string")


@pytest.mark.parametrize("depth", [200, 990, 100_000])
def test_deep_maps(depth: int) -> None:
    assert refusal(parse, '{"config": ' + '{"a": ' * depth + "1" + "}" * depth + "}").msg


@pytest.mark.parametrize(
    "item",
    ["[]", "{}", '{"a":1}', "[[]]", "[[[]]]", "0", '""', "null"],
)
@pytest.mark.parametrize("name", ["config", "x", "wants", "other"])
def test_millions_of_small_things_are_not_built(item: str, name: str) -> None:
    body = f'{{"{name}": [{",".join([item] * 1_500_000)}]}}'.encode()
    limits = decode_limits(max_elements=10**6)
    tracemalloc.start()
    try:
        assert refusal(parse, body, limits, ServiceError).loc[:1] in ((), ("cost",))
        # The body once more as text is all that was made.
        assert tracemalloc.get_traced_memory()[1] < len(body) + 2**20
    finally:
        tracemalloc.stop()


def test_many_keys_are_not_built() -> None:
    body = "{" + ",".join(f'"k{n}": 1' for n in range(2000)) + "}"
    assert "too many values" in refusal(parse, body).msg
    body = '{"config": {' + ",".join(f'"k{n}": 1' for n in range(2000)) + "}}"
    assert "too many values" in refusal(parse, body).msg


def test_a_long_list_in_config() -> None:
    assert refusal(parse, {"config": {"stride": [1] * 5000}}).loc == ("config", "stride")
    body = {"config": {"a": [[1] * 100] * 100}}
    assert refusal(parse, body).loc[:2] == ("config", "a")


@pytest.mark.parametrize("case", cases.LONG_TEXTS, ids=repr)
def test_long_texts(case: Refused) -> None:
    case.agrees(refusal(parse, case.given))


def test_the_rank_is_a_limit() -> None:
    limits = decode_limits(max_rank=3)
    assert parse({"x": [[[1]]]}, limits).tensors["x"].ndim == 3
    for body, loc in (({"x": [[[[1]]]]}, ("x",)), (x(shape=[1] * 4, data=[1]), ("x", "shape"))):
        with pytest.raises(InvalidValue) as caught:
            parse(body, limits)
        assert caught.value.issues[0].loc == loc
    # Lists that nest more deeply than any shape has axes contradict theirs.
    assert refusal(parse, x(data=[[[[1]]]]), limits).loc == ("x", "data")


def _body(count: int, form: str) -> Any:
    """A body with so many numbers in its lists, of which some stand in each tensor."""
    more = {"weight": [[1, 1], ["NaN", -1.5]], "bias": [0]}
    return {
        "bare": {"x": [1] * count},
        "nested": {"x": [[[1]] * count]},
        "two": {"x": [1] * (count - 5), **more},
        "maps": {
            "x": {"dtype": "float32", "shape": [1, 1, count - 5], "data": [1] * (count - 5)},
            "weight": {"dtype": "float32", "shape": [2, 2], "data": more["weight"]},
            "bias": {"dtype": "float32", "shape": [1], "data": [0]},
        },
        "config": {
            "config": {"kernel": [2, 3], "padding": [[1, 2], [3, 4]], "a": 1, "b": "1,2,3,4"},
            "wants": ["dx", "y"],
            "x": [1] * count,
        },
        "base64": {
            "x": [1] * count,
            "weight": {"dtype": "uint8", "shape": [300], "data": "A" * 400},
        },
    }[form]


@pytest.mark.parametrize("form", ["bare", "nested", "two", "maps", "config", "base64"])
@pytest.mark.parametrize("limit", [20, 200, 10_000])
def test_the_limit_on_numbers_is_exact(form: str, limit: int) -> None:
    limits = decode_limits(max_elements=limit)
    parse(_body(limit, form), limits)
    issue = refusal(parse, _body(limit + 1, form), limits, LimitExceeded)
    assert issue.loc == ("cost", "json_numbers")
    assert issue.got == limit + 1


def test_the_limits_on_numbers_and_lists_say_what_helps() -> None:
    limits = decode_limits(max_elements=10)
    for count in (11, 100_000):
        issue = refusal(parse, {"x": [1] * count}, limits, LimitExceeded)
        assert issue.loc == ("cost", "json_numbers")
        assert "base64" in issue.expected
        assert "msgpack" in issue.expected
        assert issue.got == count
    issue = refusal(parse, {"x": [[1]] * 9}, decode_limits(max_lists=9), LimitExceeded)
    assert issue.loc == ("cost", "json_lists")
    assert "lists" in issue.msg
    assert issue.got == 10
