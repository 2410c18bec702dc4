"""An address where there is nothing: the answer names the one that was meant, where that is sure."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from app.errors import NotFound
from app.routes.near import LONGEST
from tests.app.asgi import Answer, ask, running, scope_of

CONV = "/v1/conv/forward or /v1/conv/backward or /v1/conv/plan"


def not_found(method: str, path: str) -> Answer:
    async def scenario() -> Answer:
        async with running() as app:
            return await ask(app, method, path)

    answer = asyncio.run(scenario())
    assert answer.status == 404
    assert answer.json["type"] == "/problems/not-found"
    return answer


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/operations/", "/v1/operations"),
        ("/v1/operations/conv", "/v1/operations"),
        ("/v1/limits/max_flops", "/v1/limits"),
        ("/v1/conv/forward/", "/v1/conv/forward"),
        ("/problems", "/problems/"),
        ("/docs/", "/docs"),
        ("//livez", "/livez"),
        ("/v1/conv", CONV),
        ("/conv", CONV),
        ("/conv/forward", "/v1/conv/forward"),
        ("/deconv/forward", "/v1/deconv/forward"),
        ("/limits", "/v1/limits"),
        ("/v1/operation", "/v1/operations"),
        ("/openapi.jsn", "/openapi.json"),
        ("/problems/unknown-fields", "/problems/unknown-field"),
    ],
)
def test_the_address_that_was_meant_is_named(path: str, meant: str) -> None:
    answer = not_found("GET", path)
    (error,) = answer.json["errors"]
    assert error == {
        "loc": ["path"],
        "msg": "there is nothing here",
        "expected": meant,
        "got": path,
    }
    assert answer.json["detail"] == f"There is nothing at this address. Did you mean {meant}?"


@pytest.mark.parametrize("path", ["/v1", "/nothing", "/v1/a/b/c", "/" + "x" * LONGEST])
def test_where_nothing_is_near_the_description_is_named(path: str) -> None:
    answer = not_found("POST", path)
    assert answer.json["errors"][0]["expected"] == "an address that /openapi.json names"
    assert answer.json["detail"] == NotFound.summary


def test_under_a_path_the_address_is_named_with_it() -> None:
    answer = Answer()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        answer.messages.append(message)

    async def scenario() -> None:
        async with running() as app:
            scope = scope_of("GET", "/convoke/problems") | {"root_path": "/convoke"}
            await app(scope, receive, send)

    asyncio.run(scenario())
    (error,) = answer.json["errors"]
    assert (error["expected"], error["got"]) == ("/convoke/problems/", "/convoke/problems")
