"""What the OpenAPI document says of answers, held against real ones of every operation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from jsonschema import Draft202012Validator

import engine
from app.options import load
from app.routes.examples import example
from app.routes.openapi import describe
from app.wire.read_msgpack import NUMPY_FIELDS, PLAIN_FIELDS
from tests.app.asgi import Answer, ask, running

DOCUMENT = describe(engine.operations(), load({}))
JSON, MSGPACK = "application/json", "application/vnd.msgpack"
INFO = {
    "operation": "conv",
    "action": "forward",
    "algorithm": "direct",
    "padding": [[0, 0]],
    "batch": {"requests": 1, "rows": 1},
}


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """Of a part of the document, whose references lead into the rest."""
    return Draft202012Validator(schema | {"components": DOCUMENT["components"]})


def answer_schema(path: str, media_type: str) -> Draft202012Validator:
    content = DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]
    return validator(content[media_type]["schema"])


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """A path and a body for each example in the catalogue, action and floating type."""
    for name, entry in engine.operations().items():
        for given in entry["examples"]:
            for action in ("forward", "backward"):
                for dtype in ("float16", "float32", "float64"):
                    text = json.dumps(example(name, given, action)).replace("float32", dtype)
                    yield f"/v1/{name}/{action}", json.loads(text)


async def sent(app: Any, path: str, body: object, accept: str) -> Answer:
    headers = {"content-type": JSON, "accept": accept}
    answer = await ask(app, "POST", path, headers, json.dumps(body).encode())
    assert answer.status == 200, answer.body
    return answer


@pytest.mark.parametrize("accept", [JSON, f"{JSON}; tensors=base64", MSGPACK])
def test_answers_are_as_they_are_described(accept: str) -> None:
    async def scenario() -> None:
        media_type = accept.partition(";")[0]
        found = set()
        async with running() as app:
            for path, body in requests():
                answer = await sent(app, path, body, accept)
                read = msgpack.unpackb if media_type == MSGPACK else json.loads
                values = read(answer.body)
                answer_schema(path, media_type).validate(values)
                tensors = [each for name, each in values.items() if name != "info"]
                assert all(tuple(each) == PLAIN_FIELDS for each in tensors)
                found |= {each["dtype"] for each in tensors}
        dtype = DOCUMENT["components"]["schemas"]["AnswerTensorInJson"]["properties"]["dtype"]
        assert found == set(dtype["enum"])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "x",
    [
        [[1000, -1000], [0, "NaN"]],
        {"dtype": "float32", "shape": [0, 2], "data": []},
    ],
)
def test_so_are_those_without_samples_and_with_numbers_that_json_lacks(x: Any) -> None:
    async def scenario() -> None:
        body = {"config": {"name": "exponential"}, "x": x}
        path = "/v1/activation/forward"
        async with running() as app:
            for accept in (JSON, f"{JSON}; tensors=base64"):
                values = (await sent(app, path, body, accept)).json
                answer_schema(path, JSON).validate(values)

    asyncio.run(scenario())


def test_the_maps_of_msgpack_numpy_have_binary_keys_which_no_schema_knows() -> None:
    async def scenario() -> None:
        path = "/v1/activation/forward"
        body = {"config": {"name": "relu"}, "x": [[1, -1]]}
        async with running() as app:
            answer = await sent(app, path, body, f"{MSGPACK}; tensors=msgpack-numpy")
        tensor = msgpack.unpackb(answer.body)["y"]
        assert [key.decode() for key in tensor] == list(NUMPY_FIELDS)
        described = DOCUMENT["components"]["schemas"]["AnswerTensorInMsgpack"]["description"]
        assert "tensors=msgpack-numpy" in described

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "y",
    [
        [[[1.0]]],
        {"dtype": "<f4", "shape": [1], "data": [1.0]},
        {"dtype": "int8", "shape": [1], "data": [1]},
        {"dtype": "float32", "data": [1.0]},
        {"dtype": "float32", "shape": [1], "data": ["nan"]},
    ],
)
@pytest.mark.parametrize("name", ["y", "dx"])
def test_nothing_else_is_an_answers_tensor(name: str, y: Any) -> None:
    """Else clients that are made from the document know no field of it."""
    right = {"dtype": "float32", "shape": [1], "data": [1.0]}
    path = f"/v1/conv/{'forward' if name == 'y' else 'backward'}"
    schema = answer_schema(path, JSON)
    assert schema.is_valid({name: right, "info": INFO})
    assert not schema.is_valid({name: y, "info": INFO})


def document_schema(path: str) -> Draft202012Validator:
    """Of what a GET answers."""
    content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]
    return validator(content[JSON]["schema"])


@pytest.mark.parametrize("path", ["/v1/operations", "/v1/limits", "/version", "/livez", "/readyz"])
def test_documents_are_as_they_are_described(path: str) -> None:
    async def scenario() -> None:
        async with running() as app:
            answer = await ask(app, "GET", path)
        document_schema(path).validate(answer.json)

    asyncio.run(scenario())


def test_the_catalogue_is_described_field_by_field() -> None:
    """Each of its fields is named, and none that is always there may be missing."""
    described = DOCUMENT["components"]["schemas"]["Operations"]["additionalProperties"]
    entries = engine.operations().values()
    assert set(described["required"]) == set.intersection(*(set(each) for each in entries))
    assert described["properties"].keys() == set().union(*entries)
    tensors = [about for each in entries for about in each["tensors"].values()]
    tensor = described["properties"]["tensors"]["additionalProperties"]
    assert tensor["properties"].keys() == set().union(*tensors)
    schema = document_schema("/v1/operations")
    for name in described["required"]:
        entry = {**engine.operations()["conv"]}
        del entry[name]
        assert not schema.is_valid({"conv": entry})


def maps(node: Any) -> list[dict[str, Any]]:
    """Every schema of a map."""
    values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    own = [node] if isinstance(node, dict) and node.get("type") == "object" else []
    return own + [each for value in values for each in maps(value)]


def test_no_map_is_left_bare() -> None:
    """openapi-typescript takes one for a map without fields."""
    telling = {"properties", "additionalProperties", "oneOf"}
    found = maps(DOCUMENT)
    assert len(found) > 100
    assert [each for each in found if each.keys().isdisjoint(telling)] == []
