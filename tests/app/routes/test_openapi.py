"""The OpenAPI document: complete, closed in itself, and true."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import engine
from app.errors import (
    BodyTooLarge,
    HeadersTooLarge,
    MalformedRequest,
    RateLimited,
    RequestTimeout,
    ShuttingDown,
    TooManyConnections,
)
from app.options import load
from app.problems import KINDS, problem
from app.record import Record
from app.routes.examples import example
from app.routes.openapi import describe
from app.routes.schemas import DTYPE, HEADERS, MOST_AXES
from app.wire import MEDIA_TYPES
from app.wire.elements import DTYPES
from app.wire.read_msgpack import NUMPY_FIELDS, PLAIN_FIELDS
from engine.registry import table
from tests.app.asgi import ask, running
from tests.app.test_problems import STATUS, made
from tests.app.wire.bodies import HOSTILE_DTYPES

ACTIONS = ("forward", "backward", "plan")
DOCUMENT = describe(engine.operations(), load({}))


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [each for value in node.values() for each in references(value)]
    if isinstance(node, list):
        return [each for value in node for each in references(value)]
    return []


def arrays(node: Any) -> list[dict[str, Any]]:
    """Every schema of an array, or of that among others."""
    values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    own = [node] if isinstance(node, dict) and "array" in node.get("type", ()) else []
    return own + [each for value in values for each in arrays(value)]


def test_every_array_says_what_it_is_of() -> None:
    """openapi-python-client makes nothing of a body in which one does not, and Spectral reports it."""
    found = arrays(DOCUMENT)
    assert len(found) > 50
    assert [schema for schema in found if "items" not in schema] == []


@pytest.mark.parametrize("keys", ["", "k"])
def test_everything_says_whether_it_takes_a_key(keys: str) -> None:
    paths = describe(engine.operations(), load({"CONVOKE_API_KEYS": keys}))["paths"]
    for path, methods in paths.items():
        for each in methods.values():
            needed = bool(keys) and path.startswith("/v1/")
            assert each["security"] == ([{"key": []}] if needed else []), path


def test_every_operation_and_action_has_a_path() -> None:
    expected = {f"/v1/{name}/{action}" for name in engine.operations() for action in ACTIONS}
    expected |= {"/v1/operations", "/v1/limits", "/version", "/livez", "/readyz", "/metrics"}
    assert DOCUMENT["paths"].keys() == expected
    ids = [each["operationId"] for path in DOCUMENT["paths"].values() for each in path.values()]
    assert len(set(ids)) == len(ids)


def test_references_lead_somewhere() -> None:
    found = references(DOCUMENT)
    assert len(found) > 100
    for reference in found:
        node = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]


def test_bodies_come_in_every_form() -> None:
    body = DOCUMENT["paths"]["/v1/conv/forward"]["post"]["requestBody"]["content"]
    assert body.keys() == {
        "application/vnd.msgpack",
        "application/msgpack",
        "application/x-msgpack",
        "application/json",
    }
    schema = body["application/vnd.msgpack"]["schema"]
    assert schema["required"] == ["x", "weight"]
    assert schema["properties"].keys() == {"config", "x", "weight", "bias"}
    null, reference = {"type": "null"}, {"$ref": "#/components/schemas/conv.config"}
    assert schema["properties"]["config"] == {"anyOf": [reference, null]}
    assert schema["properties"]["bias"]["anyOf"] == [schema["properties"]["x"], null]
    config = DOCUMENT["components"]["schemas"]["conv.config"]
    assert config == engine.operations()["conv"]["config"]


@pytest.mark.parametrize("action", ["forward", "backward", "plan"])
def test_json_is_the_first_form_since_it_is_what_can_be_typed(action: str) -> None:
    post = DOCUMENT["paths"][f"/v1/conv/{action}"]["post"]
    for content in (post["requestBody"]["content"], post["responses"]["200"]["content"]):
        assert next(iter(content)) == "application/json"
        assert content.keys() == MEDIA_TYPES.keys()


def test_a_required_field_makes_its_config_required() -> None:
    path = DOCUMENT["paths"]["/v1/max_pool/backward"]["post"]
    schema = path["requestBody"]["content"]["application/json"]["schema"]
    assert {"config", "dy"} <= set(schema["required"])
    assert "x" not in schema["required"]
    wants, null = schema["properties"]["wants"]["anyOf"]
    assert (wants["items"], null) == ({"enum": ["y", "dx"]}, {"type": "null"})
    path = DOCUMENT["paths"]["/v1/max_pool/plan"]["post"]
    schema = path["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["shapes", "config"]


X, INDICES = {"x": [[[1, 2]]]}, {"indices": [[[1]]]}


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (X, True),
        (INDICES, True),
        (X | INDICES, True),
        (X | {"indices": None}, True),
        (INDICES | {"x": None}, True),
        ({}, False),
        ({"x": None}, False),
        ({"x": None, "indices": None}, False),
    ],
)
def test_max_pool_returns_gradients_to_x_or_by_indices(given: Any, right: bool) -> None:
    body = {"config": {"kernel": 2, "input_shape": [1, 1, 2]}, "dy": [[[1]]]} | given
    path = "/v1/max_pool/backward"
    content = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"] | {"components": DOCUMENT["components"]}
    assert Draft202012Validator(schema).is_valid(body) is right

    async def scenario() -> None:
        async with running() as app:
            headers = {"content-type": "application/json"}
            answer = await ask(app, "POST", path, headers, json.dumps(body).encode())
        assert (answer.status == 200) is right, answer.body

    asyncio.run(scenario())


def test_a_plan_takes_the_shapes_of_tensors_of_forward() -> None:
    path = DOCUMENT["paths"]["/v1/conv/plan"]["post"]
    shapes = path["requestBody"]["content"]["application/json"]["schema"]["properties"]["shapes"]
    assert shapes["properties"].keys() == {"x", "weight", "bias"}
    assert shapes["required"] == ["x", "weight"]
    assert not shapes["additionalProperties"]


def test_element_types_are_those_that_are_read() -> None:
    pattern = re.compile(DTYPE["pattern"])
    given = {*DTYPES, *(name for name in HOSTILE_DTYPES if isinstance(name, str))}
    assert {name for name in given if pattern.search(name)} == DTYPES.keys()


LISTS = [
    ([1, 2.5, "NaN", "Infinity", "-Infinity"], True),
    ([[[1, "NaN"], []], 2], True),
    ([[[[[[[[1]]]]]]]], True),
    ([[[[[[[[[1]]]]]]]]], False),
    (["nan"], False),
    ([["1"]], False),
    ([[[[[[[["1"]]]]]]]], False),
    ([[[True]]], False),
    ([[[1, [None]]]], False),
    ([[[{}]]], False),
    ("1", False),
]


@pytest.mark.parametrize(("lists", "right"), LISTS)
def test_nested_lists_are_of_numbers_and_such_as_json_lacks(lists: Any, right: bool) -> None:
    schema = DOCUMENT["components"]["schemas"]["TensorInJson"]
    assert Draft202012Validator(schema).is_valid(lists) is right


def test_no_tensor_has_more_axes_than_the_lists_that_are_described() -> None:
    assert max(most for _, most in (each.ranks() for each in table().values())) == MOST_AXES


def test_msgpack_takes_the_maps_of_msgpack_numpy() -> None:
    forms = DOCUMENT["components"]["schemas"]["TensorInMsgpack"]["oneOf"]
    assert [tuple(form["properties"]) for form in forms] == [PLAIN_FIELDS, NUMPY_FIELDS]
    assert [tuple(form["required"]) for form in forms] == [PLAIN_FIELDS, NUMPY_FIELDS]


def test_every_refusal_is_described() -> None:
    responses = DOCUMENT["paths"]["/v1/conv/forward"]["post"]["responses"]
    assert responses.keys() == {"200"} | {str(kind.status) for kind in KINDS}


def test_what_any_request_may_be_answered_is_described_everywhere() -> None:
    anywhere = {
        MalformedRequest,
        RequestTimeout,
        BodyTooLarge,
        HeadersTooLarge,
        RateLimited,
        TooManyConnections,
        ShuttingDown,
    }
    statuses = {"500"} | {str(STATUS[kind]) for kind in anywhere}
    for path, methods in DOCUMENT["paths"].items():
        for method in methods.values():
            assert statuses <= method["responses"].keys(), path


def test_refusals_say_which_headers_they_have() -> None:
    found: dict[str, set[str]] = {}
    for kind, status in STATUS.items():
        own = problem(made(kind), "r-1").headers.keys() - {"Content-Type"}
        found.setdefault(str(status), set()).update(own)
    for name, own in found.items():
        headers = DOCUMENT["components"]["responses"][name]["headers"]
        assert headers.keys() == own | HEADERS.keys(), name


@pytest.mark.parametrize("path", ["/v1/limits", "/metrics", "/v1/conv/forward"])
def test_answers_have_the_headers_that_are_described(path: str) -> None:
    async def scenario() -> None:
        async with running() as app:
            answer = await ask(app, "GET", path)
        expected = DOCUMENT["paths"].get(path, {}).get("get", {}).get("responses")
        response = expected["200"] if expected else DOCUMENT["components"]["responses"]["405"]
        assert {name.lower() for name in response["headers"]} <= answer.headers.keys()

    asyncio.run(scenario())


def test_headers_that_every_answer_has_are_described() -> None:
    sent = {name.decode() for name, _ in Record("r-1", {}, 0.0).common_headers()}
    assert {name.lower() for name in HEADERS} == sent


def test_keys_are_asked_for_where_they_are_needed() -> None:
    document = describe(engine.operations(), load({"CONVOKE_API_KEYS": "k"}))
    scheme = document["components"]["securitySchemes"]["key"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    closed = document["paths"]
    assert closed["/v1/conv/plan"]["post"]["security"] == [{"key": []}]
    assert closed["/v1/limits"]["get"]["security"] == [{"key": []}]
    assert "securitySchemes" not in DOCUMENT["components"]
    assert DOCUMENT["paths"]["/v1/conv/plan"]["post"]["security"] == []


def test_the_root_path_is_the_servers() -> None:
    document = describe(engine.operations(), load({"CONVOKE_ROOT_PATH": "/convoke"}))
    assert document["servers"] == [{"url": "/convoke"}]


@pytest.mark.parametrize("action", ACTIONS)
def test_the_examples_work(action: str) -> None:
    async def scenario() -> None:
        async with running() as app:
            served = await ask(app, "GET", "/openapi.json")
            paths = served.json["paths"]
            for name, entry in engine.operations().items():
                content = paths[f"/v1/{name}/{action}"]["post"]["requestBody"]["content"]
                examples = content["application/json"]["examples"]
                assert len(examples) == len(entry["examples"]) > 0
                for each in examples.values():
                    assert all(field in each["summary"] for field in each["value"]["config"])
                    body = json.dumps(each["value"]).encode()
                    headers = {"content-type": "application/json"}
                    answer = await ask(app, "POST", f"/v1/{name}/{action}", headers, body)
                    assert answer.status == 200, (name, answer.body)
                    if action != "plan":
                        _fits(answer.json, served.json, f"/v1/{name}/{action}")

    asyncio.run(scenario())


def _fits(answer: dict[str, Any], document: Any, path: str) -> None:
    """The answer has the keys that its schema has."""
    response = document["paths"][path]["post"]["responses"]["200"]["content"]
    schema = response["application/json"]["schema"]
    assert ("y" in schema["required"]) == path.endswith("/forward")
    assert set(schema["required"]) <= answer.keys() <= schema["properties"].keys()
    info = document["components"]["schemas"]["Info"]
    assert set(info["required"]) <= answer["info"].keys()


def test_examples_have_values_of_both_signs() -> None:
    given = {"config": {"kernel": 2}, "shapes": {"x": [1, 2, 4]}}
    data = example("max_pool", given, "forward")["x"]["data"]
    assert len(data) == 8
    assert min(data) < 0 < max(data)
