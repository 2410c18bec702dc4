"""Every limit at its edge: what just fits is answered, one more is refused by name."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import pytest
from starlette.types import Message

from app.limits import limits
from app.settings import Settings
from benchmarks.stress.client import Hung, Reply, Wire, ask, request, wire
from benchmarks.stress.service import Service, running, until
from benchmarks.stress.traffic import packed
from tests.app.asgi import Answer, Client, scope_of
from tests.app.asgi import ask as ask_within
from tests.app.asgi import running as within
from tests.faults.metrics import metric_at
from tests.serving import ROOT

MSGPACK = {"content-type": "application/vnd.msgpack"}
JSON = {"content-type": "application/json"}
POOL = "/v1/max_pool/forward"
ONE = np.ones((1, 1, 1, 1), np.float32)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def sized(size: int) -> bytes:
    """A body of so many bytes that is answered."""
    frame = len(packed({"kernel": 1}, x=ones(1, 1, 20_000))) - 80_000
    body = packed({"kernel": 1}, x=np.ones((1, 1, size - frame), np.uint8))
    # The names of the dtypes and the sizes of the heads differ a little.
    body = packed({"kernel": 1}, x=np.ones((1, 1, 2 * size - frame - len(body)), np.uint8))
    assert len(body) == size
    return body


def sized_json(size: int) -> bytes:
    text = json.dumps({"config": {"kernel": 1}, "x": [[[1.0]]]})
    return text.encode().ljust(size)


def padded(outputs: int) -> bytes:
    """A convolution with so many outputs, of which the input brings one."""
    return packed({"padding": [[0, outputs - 1]]}, x=ones(1, 1, 1), weight=ones(1, 1, 1))


def numbers(count: int) -> bytes:
    return json.dumps({"config": {"kernel": 1}, "x": [[[1.0] * count]]}).encode()


def few_numbers_large_answer(count: int) -> bytes:
    config = {"padding": [[0, count - 1]]}
    return json.dumps({"config": config, "x": [[[1.0]]], "weight": [[[1.0]]]}).encode()


def ranked(rank: int) -> bytes:
    """What is refused for its rank by the decoder beyond the limit, and by the engine below."""
    return packed({"kernel": 1}, x=ones(*[1] * rank))


@dataclass(frozen=True)
class Edge:
    """One limit: its setting, a request that just fits, and one that does not."""

    name: str
    value: str
    fits: bytes
    exceeds: bytes
    status: int
    slug: str
    path: str = POOL
    media: tuple[str, str] = ("content-type", "application/vnd.msgpack")
    fitting: int = 200
    also: tuple[tuple[str, str], ...] = ()


CONV = "/v1/conv/forward"
AS_JSON = ("content-type", "application/json")

EDGES = [
    Edge("max_body_bytes", "30000", sized(30_000), sized(30_001), 413, "body-too-large"),
    Edge(
        "max_json_bytes", "3000", sized_json(3000), sized_json(3001), 413, "body-too-large",
        media=AS_JSON,
    ),
    Edge("max_held_bytes", "60000", sized(60_000), sized(60_001), 413, "body-too-large"),
    Edge("max_tensor_rank", "4", ranked(4), ranked(5), 422, "invalid-value"),
    Edge(
        "max_output_bytes", "4000", padded(1000), padded(1001), 422, "limit-exceeded", CONV
    ),
    Edge(
        "max_tensor_bytes", "4008", padded(1000), padded(1001), 422, "limit-exceeded", CONV
    ),
    Edge("max_flops", "2000", padded(1000), padded(1001), 422, "limit-exceeded", CONV),
    Edge(
        "max_json_numbers", "1000", numbers(1000), numbers(1001), 422, "limit-exceeded",
        media=AS_JSON,
    ),
    Edge(
        "max_json_numbers", "1000", few_numbers_large_answer(1000), few_numbers_large_answer(1001),
        422, "limit-exceeded", CONV, AS_JSON,
    ),
    Edge("max_queue_bytes", "4008", padded(1000), padded(1000), 503, "queue-full", CONV,
         also=(("max_queue_requests", "1000"),)),
]  # fmt: skip


async def answers(edge: Edge) -> tuple[Answer, Answer]:
    settings = {edge.name: edge.value, **dict(edge.also)}
    async with within(**settings) as app:
        headers = dict([edge.media])
        fits = await ask_within(app, "POST", edge.path, headers, edge.fits)
        if (
            edge.name == "max_queue_bytes"
        ):  # one alone is always let in; it is the second that waits
            pair = [ask_within(app, "POST", edge.path, headers, edge.exceeds) for _ in "12"]
            return fits, max(await asyncio.gather(*pair), key=lambda answer: answer.status)
        return fits, await ask_within(app, "POST", edge.path, headers, edge.exceeds)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
def test_at_its_edge(edge: Edge) -> None:
    fits, exceeds = asyncio.run(answers(edge))
    assert fits.status == edge.fitting, fits.body[:300]
    assert exceeds.status == edge.status, exceeds.body[:300]
    assert exceeds.json["type"] == f"/problems/{edge.slug}"
    if edge.status == 503:
        assert int(exceeds.headers["retry-after"]) >= 1
    elif edge.slug == "limit-exceeded":
        assert exceeds.json["errors"][0]["loc"][0] == "cost"


def test_the_workspace_too_has_an_edge() -> None:
    """Its size is the engine's secret, so the plan is asked for it."""
    shapes = {"x": [1, 8, 32, 32], "weight": [8, 8, 5, 5]}
    body = msgpack.packb({"shapes": shapes})

    async def plan(limit: str) -> Answer:
        async with within(max_workspace_bytes=limit) as app:
            return await ask_within(app, "POST", "/v1/conv/plan", MSGPACK, body)

    need = msgpack.unpackb(asyncio.run(plan("1GiB")).body)["bytes"]["workspace"]
    assert need > 0
    assert asyncio.run(plan(str(need))).status == 200
    refused = asyncio.run(plan(str(need - 1)))
    assert refused.status == 422
    assert refused.json["errors"][0]["loc"] == ["cost", "workspace_bytes"]


def test_steps_have_an_edge() -> None:
    shapes = {"x": [1, 1, 100_000]}

    async def plan(limit: str) -> Answer:
        async with within(max_steps=limit) as app:
            body = msgpack.packb({"config": {"kernel": 5000, "stride": 1}, "shapes": shapes})
            return await ask_within(app, "POST", "/v1/max_pool/plan", MSGPACK, body)

    refused = asyncio.run(plan("1"))
    assert refused.status == 422
    got = refused.json["errors"][0]["got"]
    assert asyncio.run(plan(str(got))).status == 200
    assert asyncio.run(plan(str(got - 1))).status == 422


@pytest.mark.parametrize(
    ("announced", "read"), [({"content-length": "50000"}, 0), ({}, 1500)], ids=["length", "chunks"]
)
def test_bodies_are_refused_before_they_are_read_whole(
    announced: dict[str, str], read: int
) -> None:
    client = Client([b"\x80" * 500] * 100)
    told: list[tuple[int, int]] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            told.append((message["status"], client.read))

    async def scenario() -> None:
        async with within(max_body_bytes="1000") as app:
            await app(scope_of("POST", POOL, MSGPACK | announced), client.receive, send)

    asyncio.run(scenario())
    assert told == [(413, read)]


# ---- limits that need real sockets, or time


def test_headers_connections_and_callers() -> None:
    good = sized(30_000)

    def long_headers(connection_head: int) -> bytes:
        return request(POOL, good, {"X-A": "a" * connection_head})

    async def scenario(port: int) -> None:
        async with wire(port) as connection:
            counted = len(long_headers(0)) - len(good)
            reply = await _said(connection, long_headers(2048 - counted))
            assert reply.status == 200
        async with wire(port) as connection:
            reply = await _said(connection, long_headers(2049 - counted))
            assert reply.status == 431
        async with wire(port) as first, wire(port) as second, wire(port) as third:
            for connection in (first, second):
                assert (await connection.ask("/livez", method="GET")).status == 200
            try:
                assert (await third.ask("/livez", method="GET")).slug == "too-many-connections"
            except Hung:
                pytest.fail("it was hung up on without a word")

    with running("--workers", "0", max_header_bytes="2048", max_connections="2") as service:
        asyncio.run(scenario(service.port))


@pytest.mark.parametrize("limit", ["max_connections", "max_address_connections"])
def test_a_place_is_free_at_once_whoever_was_refused_meanwhile(limit: str) -> None:
    async def scenario(service: Service) -> None:
        async with wire(service.port) as held, wire(service.port) as refused:
            assert (await held.ask("/livez", method="GET")).status == 200
            assert (await refused.reply()).status in (429, 503)
            await held.close()
            until(lambda: service.connections() == 1)
            async with wire(service.port) as next_:
                assert (await next_.ask("/livez", method="GET")).status == 200

    with running("--workers", "0", **{limit: "1"}) as service:
        asyncio.run(scenario(service))


def test_one_address_leaves_connections_to_others() -> None:
    async def scenario(port: int) -> None:
        async with wire(port) as one, wire(port), wire(port) as third:
            assert (await one.ask("/livez", method="GET")).status == 200
            refused = await third.ask("/livez", method="GET")
            assert (refused.status, refused.slug) == (429, "rate-limited")
            assert int(refused.headers["retry-after"]) >= 1
            assert "max_address_connections" in refused.problem["detail"]
            async with contextlib.AsyncExitStack() as crowd:
                before = service.held().files
                wires = [await crowd.enter_async_context(wire(port)) for _ in range(60)]
                async with wire(port, "127.0.0.2") as other:
                    assert (await other.ask("/livez", method="GET")).status == 200
                # Few of them are held for the moment in which they read why.
                assert service.held().files < before + 20
                assert (await wires[-1].reply()).status == 429
        async with wire(port) as again:
            assert (await again.ask("/livez", method="GET")).status == 200

    with running("--workers", "0", max_address_connections="2") as service:
        asyncio.run(scenario(service.port))


async def _said(connection: Wire, data: bytes) -> Reply:
    await connection.say(data)
    return await connection.reply()


def test_callers_have_a_rate_and_a_number_at_once() -> None:
    keys = {"Authorization": "Bearer first"}, {"Authorization": "Bearer second"}
    body = packed({"kernel": 1}, x=ONE)

    async def rate(port: int) -> None:
        granted, started = 0, time.monotonic()
        while (refused := await ask(port, POOL, body, keys[0])).status == 200:
            granted += 1
        assert 3 <= granted <= 3 + 0.5 * (time.monotonic() - started)
        assert (await ask(port, POOL, body, keys[1])).status == 200
        wait = int(refused.headers["retry-after"])
        assert refused.slug == "rate-limited"
        assert 1 <= wait <= 10
        await asyncio.sleep(wait)
        assert (await ask(port, POOL, body, keys[0])).status == 200

    with running(
        "--workers", "0", api_keys="first,second", max_caller_rate="0.5", max_caller_burst="3"
    ) as service:
        asyncio.run(rate(service.port))

    async def at_once(port: int) -> None:
        async with wire(port) as one, wire(port) as two:
            for connection in (one, two):
                await connection.say(request(POOL, body, keys[0])[: -len(body)])
            while await metric_at(port, "convoke_requests_in_flight") < 2:
                await asyncio.sleep(0.01)
            again = {**keys[0], "X-Request-Id": "again"}
            refused = await ask(port, POOL, body, again)
            assert (refused.status, refused.slug) == (429, "rate-limited")
            wait = int(refused.headers["retry-after"])
            assert wait >= 1
            assert (await ask(port, POOL, body, keys[1])).status == 200
            await one.say(body)
            assert (await one.reply()).status == 200
            await asyncio.sleep(wait)
            assert (await ask(port, POOL, body, again)).status == 200

    with running(
        "--workers", "0", api_keys="first,second", max_caller_requests="2"
    ) as service:  # fmt: skip
        asyncio.run(at_once(service.port))


ELSEWHERE = {
    "default_deadline_ms": "app/routes/test_head.py::test_who_names_none_has_the_default",
    "max_deadline_ms": "app/routes/test_head.py"
    "::test_a_deadline_counts_from_the_first_byte_and_is_no_later_than_the_latest",
    "max_batch_requests": "app/test_batcher.py::test_budgets_are_exact",
    "max_batch_rows": "app/test_batcher.py::test_budgets_are_exact",
    "max_batch_bytes": "app/test_batcher.py::test_budgets_are_exact",
    "max_queue_requests": "app/test_dispatcher.py"
    "::test_a_full_queue_refuses_and_says_when_to_come_back",
    "max_json_waiting_bytes": "app/scribe/test_desk.py"
    "::test_what_waits_is_bounded_in_bytes_and_one_always_may",
    "max_compute_s": "app/test_runner.py::test_a_call_beyond_the_compute_limit_is_ended",
    "header_timeout_s": "faults/test_clients.py::test_who_sends_byte_by_byte_is_given_up",
    "body_timeout_s": "faults/test_clients.py::test_who_sends_byte_by_byte_is_given_up",
    "answer_timeout_s": "faults/test_clients.py::test_who_never_reads_the_answer_is_given_up",
    "max_body_values": "app/wire/test_limits.py::test_values",
    "max_body_levels": "app/wire/test_limits.py::test_levels",
    "max_text_length": "app/wire/test_limits.py::test_text",
    "max_json_lists": "app/wire/test_limits.py::test_lists_of_json",
    "max_json_levels": "app/wire/test_json_bombs.py"
    "::test_how_deep_lists_may_be_does_not_depend_on_who_reads_them",
    "max_header_fields": "app/test_headsize.py::test_fields_are_bounded_while_they_come",
    "max_axis_length": "app/wire/test_limits.py::test_axes",
    "max_shape_bytes": "app/wire/test_limits.py::test_bytes_of_a_shape",
}
"""Limits whose edges other tests hold, each by its file under `tests` and its name."""

HERE = {
    *(edge.name for edge in EDGES),
    "max_workspace_bytes", "max_steps", "max_header_bytes", "max_connections",
    "max_address_connections",
    "max_caller_rate", "max_caller_burst", "max_caller_requests",
}  # fmt: skip


def test_no_limit_is_left_out() -> None:
    assert limits(Settings()).keys() == HERE | ELSEWHERE.keys()


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_those_that_other_tests_hold_have_them(test: str) -> None:
    path, name = test.split("::")
    assert f"def {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8")
