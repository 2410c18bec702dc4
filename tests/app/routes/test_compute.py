"""The way of a request through the hot route: the order of its checks, and who may leave it."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import msgpack
import numpy as np
import pytest

import engine
from app.routes.untaken import MOST
from tests.app.asgi import Answer, Client, ask, running

MSGPACK = {"content-type": "application/vnd.msgpack"}
JSON = {"content-type": "application/json"}
POOL = {"config": {"kernel": 2}, "x": [[[1.0, 5.0, 2.0, 4.0]]]}


def text(body: Any) -> bytes:
    return json.dumps(body).encode()


def ask_one(
    path: str,
    body: bytes | Client,
    headers: dict[str, str] | None = None,
    method: str = "POST",
    **settings: str,
) -> Answer:
    """One request to an application of its own."""

    async def scenario() -> Answer:
        async with running(**settings) as app:
            return await ask(app, method, path, JSON if headers is None else headers, body)

    return asyncio.run(scenario())


def test_json_is_answered_in_json() -> None:
    answer = ask_one("/v1/max_pool/forward", text(POOL))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["y"] == {"dtype": "float32", "shape": [1, 1, 2], "data": [[[5.0, 4.0]]]}
    assert answer.json["info"] == {
        "operation": "max_pool",
        "action": "forward",
        "algorithm": "direct",
        "padding": [[0, 0]],
        "batch": {"requests": 1, "rows": 1},
    }


def test_accept_chooses_the_form_of_the_answer() -> None:
    accept = {"accept": "application/json; tensors=base64"}
    x = {
        "dtype": "float32",
        "shape": [1, 1, 4],
        "data": np.array([1, 5, 2, 4], np.float32).tobytes(),
    }
    body = msgpack.packb({"config": {"kernel": 2}, "x": x})
    answer = ask_one("/v1/max_pool/forward", body, MSGPACK | accept)
    assert base64.b64decode(answer.json["y"]["data"]) == np.array([5, 4], np.float32).tobytes()


def test_the_alias_is_the_operation() -> None:
    body = text({"x": [[[1.0, 2.0]]], "weight": [[[1.0, 3.0]]]})
    answer = ask_one("/v1/deconv/forward", body)
    assert answer.json["info"]["operation"] == "conv_transpose"
    assert answer.json["y"]["data"] == [[[1.0, 5.0, 6.0]]]


def test_server_timing_has_every_stage() -> None:
    timing = ask_one("/v1/max_pool/forward", text(POOL)).headers["server-timing"]
    stages = dict(part.split(";dur=") for part in timing.split(", "))
    assert list(stages) == ["decode", "queue", "compute", "encode"]
    assert all(0 <= float(value) < 10_000 for value in stages.values())


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("backward", POOL | {"dy": [[[1.0, 1.0]]]}),
        ("plan", {"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4]}}),
    ],
)
def test_stages_are_parts_of_the_whole(action: str, body: dict[str, Any]) -> None:
    started = time.perf_counter()
    answer = ask_one(f"/v1/max_pool/{action}", text(body))
    whole = (time.perf_counter() - started) * 1e3
    parts = [float(part.split("=")[1]) for part in answer.headers["server-timing"].split(", ")]
    assert answer.status == 200
    assert min(parts) >= 0
    assert 0 < sum(parts) < whole


# Each request is wrong in its own way and in every later one, so the first check must speak.
ORDER: list[tuple[int, str | None, str, dict[str, Any]]] = [
    (404, "/problems/unknown-operation", "/v1/nothing/forward", {}),
    (404, "/problems/unknown-action", "/v1/conv/sideways", {}),
    (405, "/problems/method-not-allowed", "/v1/conv/forward", {"method": "PUT"}),
    (401, "/problems/unauthorized", "/v1/conv/forward", {}),
    (403, "/problems/forbidden", "/v1/conv/forward", {"authorization": "Bearer wrong"}),
    (415, "/problems/unsupported-media-type", "/v1/conv/forward", {"authorization": "Bearer key"}),
    (406, "/problems/not-acceptable", "/v1/conv/forward", {"content-type": "application/json"}),
    (422, "/problems/invalid-header", "/v1/conv/forward", {"accept": "*/*"}),
    (413, "/problems/body-too-large", "/v1/conv/forward", {"x-deadline-ms": "10000"}),
    (400, "/problems/malformed-body", "/v1/conv/forward", {"body": b"{"}),
    (422, "/problems/unknown-field", "/v1/conv/forward", {"body": b'{"z": 1}'}),
    (
        504,
        "/problems/deadline-exceeded",
        "/v1/max_pool/forward",
        {"body": text(POOL), "x-deadline-ms": "0"},
    ),
    (200, None, "/v1/max_pool/forward", {"body": text(POOL), "x-deadline-ms": "10000"}),
]


def test_checks_come_in_order() -> None:
    async def scenario() -> None:
        async with running(api_keys="other,key", max_body_bytes="100") as app:
            headers = {"content-type": "text/plain", "accept": "text/html", "x-deadline-ms": "soon"}
            body, method = b"{" * 200, "PUT"
            for status, problem, path, change in ORDER:
                change = dict(change)
                body = change.pop("body", body)
                if "method" not in change and status not in (404,):
                    method = "POST"
                headers |= {k: v for k, v in change.items() if k != "method"}
                answer = await ask(app, method, path, headers, body)
                assert answer.status == status, (path, answer.body)
                if problem:
                    assert answer.json["type"] == problem

    asyncio.run(scenario())


@pytest.mark.parametrize("value", ["", "-1", "1.5", "1e3", "soon", "0x10", "1, 2", "9" * 101])
def test_a_deadline_is_a_plain_number(value: str) -> None:
    answer = ask_one("/v1/max_pool/forward", text(POOL), JSON | {"X-Deadline-Ms": value})
    assert answer.status == 422
    (error,) = answer.json["errors"]
    assert error["loc"] == ["header", "X-Deadline-Ms"]


PLAN = {"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4]}}


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("forward", text(POOL)),
        ("backward", text(POOL | {"dy": [[[1.0, 1.0]]]})),
        ("plan", text(PLAN)),
        ("forward", b"{"),
        ("forward", text(POOL | {"z": 1})),
        ("plan", text(PLAN | {"dtype": "float8"})),
        ("forward", text(POOL | {"config": {"kernel": [1] * 1000}})),
    ],
)
def test_nothing_is_answered_late_nor_found_wrong(action: str, body: bytes) -> None:
    answer = ask_one(f"/v1/max_pool/{action}", body, JSON | {"X-Deadline-Ms": "0"})
    assert answer.json["type"] == "/problems/deadline-exceeded"
    assert answer.status == 504
    (error,) = answer.json["errors"]
    assert (error["loc"], error["got"]) == (["header", "X-Deadline-Ms"], "0")


@pytest.mark.parametrize(
    ("more", "settings", "named"),
    [({"X-Deadline-Ms": "50"}, {}, ["50"]), ({}, {"default_deadline_ms": "50"}, [])],
    ids=["the client's", "the service's"],
)
def test_a_body_that_dawdles_past_the_deadline_is_given_up(
    more: dict[str, str], settings: dict[str, str], named: list[str]
) -> None:
    class Dawdler(Client):
        async def receive(self) -> dict[str, Any]:
            if self.read:
                await self.gone.wait()
                return {"type": "http.disconnect"}
            self.read += 1
            return {"type": "http.request", "body": b"{", "more_body": True}

    async def scenario() -> Answer:
        async with running(**settings) as app:
            headers = JSON | more | {"transfer-encoding": "chunked"}
            # The end of the body never comes; the refusal must not wait for it.
            client = Dawdler()
            asyncio.get_running_loop().call_later(0.3, client.gone.set)
            return await ask(app, "POST", "/v1/max_pool/forward", headers, client)

    answer = asyncio.run(scenario())
    assert answer.status == 504
    assert [error["got"] for error in answer.json["errors"]] == named


@pytest.mark.parametrize(("size", "status"), [(100, 400), (101, 413)])
@pytest.mark.parametrize("announced", [True, False])
def test_the_limit_on_bodies_is_exact(size: int, status: int, announced: bool) -> None:
    pieces = [b"{" * 50, b"{" * (size - 50)]
    headers = JSON | (
        {"content-length": str(size)} if announced else {"transfer-encoding": "chunked"}
    )
    client = Client(pieces)
    answer = ask_one("/v1/conv/forward", client, headers, max_body_bytes="100")
    assert answer.status == status
    if status == 413:
        (error,) = answer.json["errors"]
        assert error["expected"] == "at most 100 bytes"
        assert "max_body_bytes" in error["msg"]
    if announced and status == 413:
        assert client.read == 0


def test_json_has_a_limit_of_its_own() -> None:
    async def scenario() -> None:
        async with running(max_json_bytes="100", max_body_bytes="1000") as app:
            for headers, status in ((JSON, 413), (MSGPACK, 400)):
                answer = await ask(app, "POST", "/v1/conv/forward", headers, b"{" * 500)
                assert answer.status == status

    asyncio.run(scenario())


def test_bodies_of_all_requests_together_have_a_limit() -> None:
    async def scenario() -> None:
        async with running(max_held_bytes="1000") as app:
            app.state.intake.hold(800)  # another request's
            for body in (b"x" * 600, Client([b"x" * 300, b"x" * 300])):
                refused = await ask(app, "POST", "/v1/conv/forward", MSGPACK, body)
                assert refused.status == 503
                assert int(refused.headers["retry-after"]) >= 1
                assert app.state.intake.held == 800
            app.state.intake.release(800)
            fine = await ask(app, "POST", "/v1/max_pool/forward", JSON, text(POOL))
            assert fine.status == 200
            assert app.state.intake.held == 0

    asyncio.run(scenario())


def test_a_body_that_could_never_be_held_is_too_large() -> None:
    async def scenario() -> None:
        async with running(max_held_bytes="1000", max_body_bytes="2000") as app:
            for body in (b"x" * 1200, Client([b"x" * 600, b"x" * 600])):
                refused = await ask(app, "POST", "/v1/conv/forward", MSGPACK, body)
                assert refused.status == 413
                assert "max_held_bytes" in refused.json["errors"][0]["msg"]
                assert app.state.intake.held == 0

    asyncio.run(scenario())


def test_cost_is_refused_from_the_plan() -> None:
    shapes = {"x": [1, 1, 1000], "weight": [1, 1, 3]}
    body = text({"config": {"padding": 1000}, "shapes": shapes})
    answer = ask_one("/v1/conv/plan", body, max_output_bytes="8KiB")
    assert answer.status == 422
    assert answer.json["type"] == "/problems/limit-exceeded"
    (error,) = answer.json["errors"]
    assert error["loc"] == ["cost", "output_bytes"]
    assert error["got"] == 4 * 2998


def test_lists_are_for_small_answers() -> None:
    """Other forms carry the same answer."""

    async def scenario() -> None:
        async with running(max_json_numbers="100") as app:
            body = text({"config": {"padding": 60}, "x": [[[1.0]]], "weight": [[[1.0]]]})
            for accept, status in (
                ("application/json", 422),
                ("application/json; tensors=base64", 200),
                ("application/vnd.msgpack", 200),
            ):
                headers = JSON | {"accept": accept}
                answer = await ask(app, "POST", "/v1/conv/forward", headers, body)
                assert answer.status == status

    asyncio.run(scenario())


def test_plan_answers_what_forward_would_give() -> None:
    shapes = {"x": [2, 3, 9, 9], "weight": [4, 3, 3, 3], "bias": [4]}
    config = {"stride": 2, "padding": "same"}
    answer = ask_one("/v1/conv/plan", text({"config": config, "shapes": shapes, "dtype": "<f8"}))
    assert answer.json == engine.plan("conv", config, shapes, "float64").report()
    assert answer.json["shapes"]["y"] == [2, 4, 5, 5]


@pytest.mark.parametrize(
    "config",
    [{"stride": 0}, {"strides": 1}, {"padding": [1, "x"]}, {"dilation": 99}, {"groups": 2}],
)
def test_plan_and_forward_refuse_alike(config: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with running() as app:
            x, weight = np.zeros((1, 3, 9)), np.zeros((4, 3, 3))
            forward = text({"config": config, "x": x.tolist(), "weight": weight.tolist()})
            shapes = {"x": x.shape, "weight": weight.shape}
            plan = text({"config": config, "shapes": shapes})
            ask_id = JSON | {"X-Request-Id": "same"}
            first = await ask(app, "POST", "/v1/conv/forward", ask_id, forward)
            second = await ask(app, "POST", "/v1/conv/plan", ask_id, plan)
            assert first.status == second.status == 422
            assert first.json == second.json

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("body", "loc", "expected", "got"),
    [
        (
            {"shapes": {"x": [1, 1, 3]}},
            ["shapes", "weight"],
            "a shape",
            None,
        ),
        (
            {"shapes": {"x": [1, 1, 3], "weight": [1, 1, 1], "input": [1]}},
            ["shapes", "input"],
            "one of x, weight, bias",
            "input",
        ),
        (
            {"shapes": {"x": [1, 1, 3], "weight": [1, 1, 1]}, "dtype": "uint16"},
            ["dtype"],
            "float16, float32, float64, uint8, int8, int16, int32, int64",
            "uint16",
        ),
        (
            {"x": [[[1.0]]], "weight": [[[1.0]]]},
            ["shapes"],
            'a map from tensor name to shape, as {"x": [1, 3, 8, 8]}',
            "x, weight",
        ),
        ({}, ["shapes"], 'a map from tensor name to shape, as {"x": [1, 3, 8, 8]}', None),
        (
            {"shapes": {"x": [1, 1, 3], "weight": [1, 1, 1]}, "x": [[[1.0]]]},
            ["x"],
            "shapes.x",
            "x",
        ),
    ],
)
def test_what_is_wrong_in_a_plan_is_found_in_its_body(
    body: dict[str, Any], loc: list[str], expected: str, got: object
) -> None:
    answer = ask_one("/v1/conv/plan", text(body))
    assert answer.status == 422
    (error,) = answer.json["errors"]
    assert (error["loc"], error["expected"], error["got"]) == (loc, expected, got)


def test_names_of_other_libraries_in_addresses_are_told_ours() -> None:
    unknown = ask_one("/v1/conv2d/forward", b"").json
    told = 'operation: no such operation; did you mean conv? (got "conv2d")'
    assert unknown["detail"] == told
    unknown = ask_one("/v1/conv/grad", b"").json
    expected = '(expected one of forward, backward, plan, got "grad")'
    assert unknown["detail"] == f"action: no such action; did you mean backward? {expected}"


@pytest.mark.parametrize("key", ["wants", "dy", "extra"])
def test_keys_that_mean_nothing_are_refused(key: str) -> None:
    answer = ask_one("/v1/max_pool/forward", text(POOL | {key: ["y"]}))
    assert answer.status in (400, 422)
    assert answer.json["errors"][0]["loc"][0] == key


def test_what_had_come_before_it_began_to_drain_is_answered() -> None:
    async def scenario() -> Answer:
        async with running() as app:
            app.state.lifecycle.drain()
            app.state.lifecycle._drains_from += 3600.0  # as if it had begun after the request came
            return await ask(app, "POST", "/v1/max_pool/forward", JSON, Client([text(POOL)]))

    assert asyncio.run(scenario()).status == 200


def test_nothing_new_is_taken_while_draining() -> None:
    async def scenario() -> None:
        async with running() as app:
            app.state.lifecycle.drain()
            client = Client([b"x" * 10])
            answer = await ask(app, "POST", "/v1/max_pool/forward", JSON, client)
            assert answer.json["type"] == "/problems/shutting-down"
            assert "retry-after" in answer.headers
            assert client.read == 0
            assert (await ask(app, "GET", "/readyz")).status == 503
            assert (await ask(app, "GET", "/livez")).status == 200

    asyncio.run(scenario())


class Stalled:
    """A dispatcher that takes work and never does it."""

    ready = True

    def __init__(self) -> None:
        self.taken = asyncio.Event()
        self.cancelled = asyncio.Event()

    def check_room(self, *_: object) -> None:
        pass

    async def submit(self, _: object) -> object:
        self.taken.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return None


def _stall(app: Any) -> Stalled:
    """Put a stalled dispatcher where the hot route has its own."""
    stalled = Stalled()
    app.compute._dispatcher = stalled
    return stalled


def test_a_client_that_leaves_takes_its_work_with_it() -> None:
    async def scenario() -> None:
        async with running() as app:
            stalled = _stall(app)
            client = Client([text(POOL)])
            asked = asyncio.create_task(ask(app, "POST", "/v1/max_pool/forward", JSON, client))
            await asyncio.wait_for(stalled.taken.wait(), 60)
            client.gone.set()
            assert (await asyncio.wait_for(asked, 60)).messages == []
            assert stalled.cancelled.is_set()
            assert app.state.lifecycle.in_flight == app.state.intake.held == 0

    asyncio.run(scenario())


def test_work_cut_short_by_the_server_is_answered() -> None:
    async def scenario() -> None:
        async with running() as app:
            stalled = _stall(app)
            client = Client([text(POOL)])
            asked = asyncio.create_task(ask(app, "POST", "/v1/max_pool/forward", JSON, client))
            await asyncio.wait_for(stalled.taken.wait(), 60)
            asked.cancel()
            answer = await asyncio.wait_for(asked, 60)
            assert answer.json["type"] == "/problems/shutting-down"

    asyncio.run(scenario())


def test_what_costs_too_much_is_refused_for_that_to_a_caller_with_answers_to_take() -> None:
    """To come again would be told the same again, as long as the others are under way."""

    async def scenario() -> tuple[Answer, Answer]:
        async with running(max_held_bytes="64MiB", max_output_bytes="1MiB") as app:
            app.state.intake.promise("192.0.2.1", (64 << 20) // MOST)
            path = "/v1/adaptive_avg_pool/forward"
            headers = JSON | {"accept": "application/json; tensors=base64"}
            bodies = [
                text({"config": {"output_size": size}, "x": [[[1.0]]]})
                for size in (1 << 17, 1 << 19)
            ]
            allowed, dear = [await ask(app, "POST", path, headers, body) for body in bodies]
            return allowed, dear

    allowed, dear = asyncio.run(scenario())
    assert (allowed.status, allowed.json["type"]) == (503, "/problems/queue-full")
    assert (dear.status, dear.json["type"]) == (422, "/problems/limit-exceeded")


def test_callers_of_one_ipv6_network_share_a_rate() -> None:
    """Its holder has as many addresses as it likes."""

    async def scenario() -> list[int]:
        addresses = ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:3::1", "2001:db8:1:2::3"]
        path, body = "/v1/max_pool/forward", text(POOL)
        async with running(max_caller_rate="0.001", max_caller_burst="1") as app:
            return [(await ask(app, "POST", path, JSON, body, each)).status for each in addresses]

    assert asyncio.run(scenario()) == [200, 429, 200, 429]
