"""The service as its users have it, a process and a socket: what is computed, and how it comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import msgpack
import pytest

import engine
from app.settings import Settings
from benchmarks.stress.service import until
from benchmarks.stress.traffic import packed
from tests.app.talking import (
    COMMAND,
    MSGPACK,
    Raw,
    arrays,
    metric,
    noise,
    slow_body,
)
from tests.serving import Running, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with two workers and the settings it has by itself."""
    log = tmp_path_factory.mktemp("service") / "log"
    with serving(COMMAND, "--workers", "2", log=log) as running:
        yield running


@pytest.fixture
def client(service: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=120) as made:
        yield made


def test_forward_and_backward_are_the_engines(client: httpx.Client) -> None:
    x, weight, dy = noise(2, 3, 9, 9), noise(4, 3, 3, 3, seed=1), noise(2, 4, 5, 5, seed=2)
    config = {"stride": 2, "padding": 1}
    forward = client.post(
        "/v1/conv/forward", content=packed(config, x=x, weight=weight), headers=MSGPACK
    )
    expected = engine.forward("conv", config, x=x, weight=weight)
    assert arrays(forward)["y"].tobytes() == expected["y"].tobytes()
    backward = client.post(
        "/v1/conv/backward", content=packed(config, x=x, weight=weight, dy=dy), headers=MSGPACK
    )
    gradients = engine.backward("conv", config, x=x, weight=weight, dy=dy)
    found = arrays(backward)
    assert found.keys() == gradients.keys() == {"dx", "dweight"}
    for name, gradient in gradients.items():
        assert found[name].tobytes() == gradient.tobytes()


def test_the_answer_says_what_happened(client: httpx.Client) -> None:
    body = packed({"kernel": 2}, x=noise(3, 1, 4))
    answer = client.post("/v1/max_pool/forward", content=body, headers=MSGPACK)
    assert answer.headers["Content-Type"] == "application/vnd.msgpack"
    info = msgpack.unpackb(answer.content)["info"]
    assert info == {
        "operation": "max_pool",
        "action": "forward",
        "algorithm": info["algorithm"],
        "padding": [[0, 0]],
        "batch": {"requests": 1, "rows": 3},
    }
    timing = r"decode;dur=[\d.]+, queue;dur=[\d.]+, compute;dur=[\d.]+, encode;dur=[\d.]+"
    assert re.fullmatch(timing, answer.headers["Server-Timing"])
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in answer.headers


def test_non_finite_numbers_pass_through_json(client: httpx.Client) -> None:
    body = {"config": {"kernel": 1}, "x": [[[1.5, "NaN", "-Infinity"]]]}
    answer = client.post("/v1/max_pool/forward", json=body)
    assert answer.json()["y"]["data"] == [[[1.5, "NaN", "-Infinity"]]]


def test_no_samples_are_an_answer(client: httpx.Client) -> None:
    body = packed({"kernel": 2}, x=noise(0, 3, 8))
    answer = client.post("/v1/avg_pool/forward", content=body, headers=MSGPACK)
    assert arrays(answer)["y"].shape == (0, 3, 4)


REFUSED = [
    (400, "malformed-body", "conv/forward", {"content": b"\xc1"}),
    (400, "malformed-body", "conv/forward", {"content": packed(x=noise(1, 1, 4)) + b"\0"}),
    (400, "malformed-body", "conv/forward", {"content": b""}),
    (404, "unknown-operation", "convolve/forward", {"content": b""}),
    (404, "unknown-action", "conv/train", {"content": b""}),
    (406, "not-acceptable", "conv/forward", {"headers": MSGPACK | {"Accept": "text/html"}}),
    (415, "unsupported-media-type", "conv/forward", {"headers": {"Content-Type": "text/csv"}}),
    (415, None, "conv/forward", {"headers": MSGPACK | {"Content-Encoding": "gzip"}}),
    (422, "invalid-header", "conv/forward", {"headers": MSGPACK | {"X-Deadline-Ms": "soon"}}),
    (422, "unknown-field", "lp_pool/plan", {"content": msgpack.packb({"shapes": {}, "p": 2})}),
    (422, None, "conv/forward", {"content": packed(x=noise(1, 2, 4), weight=noise(1, 1, 2))}),
    (422, None, "conv/forward", {"content": packed(x=noise(1, 1, 2), weight=noise(1, 1, 4))}),
    (422, "limit-exceeded", "conv/forward", {
        "content": packed({"padding": 2**29}, x=noise(1, 1, 4), weight=noise(1, 1, 2)),
    }),
    (504, "deadline-exceeded", "max_pool/forward", {
        "content": packed({"kernel": 2}, x=noise(1, 1, 4)),
        "headers": MSGPACK | {"X-Deadline-Ms": "0"},
    }),
]  # fmt: skip


@pytest.mark.parametrize(("status", "slug", "path", "given"), REFUSED)
def test_refusals_explain_themselves(
    client: httpx.Client, status: int, slug: str | None, path: str, given: dict[str, Any]
) -> None:
    headers = {"X-Request-Id": "mine"} | given.get("headers", MSGPACK)
    answer = client.post(f"/v1/{path}", content=given.get("content", b"\x80"), headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem.keys() == {"type", "title", "status", "detail", "request_id", "errors"}
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["X-Request-Id"] == "mine"
    assert client.get(problem["type"]).status_code == 200
    if slug:
        assert problem["type"] == f"/problems/{slug}"
    if status == 422:
        assert problem["errors"][0]["loc"]
    for error in problem["errors"]:
        assert error.keys() <= {"loc", "msg", "expected", "got"}


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/v1/conv/forward", 405, "POST"),
        ("POST", "/v1/operations", 405, "GET, HEAD"),
        ("DELETE", "/livez", 405, "GET, HEAD"),
        ("GET", "/v1/conv", 404, None),
        ("POST", "/v1/conv/forward/", 404, None),
        ("GET", "/v2/", 404, None),
        ("GET", "/etc/passwd", 404, None),
        ("OPTIONS", "/v1/conv/forward", 405, "POST"),
    ],
)
def test_addresses_and_methods(
    client: httpx.Client, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers.get("Allow") == allow


def test_what_describes_the_service(client: httpx.Client) -> None:
    operations = client.get("/v1/operations").json()
    assert operations.keys() == engine.operations().keys()
    assert operations["conv"]["config"]["properties"]["stride"]["default"] == 1
    assert client.get("/v1/limits").json()["max_body_bytes"]["value"] == Settings().max_body_bytes
    assert client.get("/version").json()["contract"] == 1
    assert client.get("/readyz").status_code == client.get("/livez").status_code == 200
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    for path in ("/", "/docs"):
        page = client.get(path)
        assert page.headers["Content-Type"].startswith("text/html")
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert client.head("/").content == b""


def test_metrics_add_up(client: httpx.Client) -> None:
    done = 'convoke_requests_total{action="forward",operation="lp_pool",status="200"}'
    refused = 'convoke_requests_total{action="forward",operation="lp_pool",status="422"}'
    unknown = 'convoke_requests_total{action="unknown",operation="unknown",status="404"}'
    computed = 'convoke_stage_seconds_count{action="forward",operation="lp_pool",stage="compute"}'
    batches = 'convoke_batch_rows_sum{action="forward",operation="lp_pool"}'
    rejects = 'convoke_rejects_total{reason="unknown-operation"}'
    series = (done, refused, unknown, computed, batches, rejects)
    before = [metric(client, each) for each in series]
    for config in ({"kernel": 2}, {"kernel": 2}, {"kernel": 0}):
        body = packed(config, x=noise(5, 1, 4))
        client.post("/v1/lp_pool/forward", content=body, headers=MSGPACK)
    client.post("/v1/a-name-of-their-own/forward")
    grown = [metric(client, each) - was for each, was in zip(series, before, strict=True)]
    assert grown == [2, 1, 1, 2, 10, 1]
    assert metric(client, "convoke_requests_in_flight") == 0
    assert metric(client, "convoke_queue_requests") == 0
    assert "a-name-of-their-own" not in client.get("/metrics").text


def test_equal_requests_get_equal_bytes_from_a_crowd(client: httpx.Client) -> None:
    requests = [
        ("conv/forward", packed({"padding": 1}, x=noise(2, 3, 8, 8), weight=noise(4, 3, 3, 3))),
        ("conv/forward", packed({"padding": 1}, x=noise(1, 3, 8, 8), weight=noise(4, 3, 3, 3))),
        (
            "conv/backward",
            packed(x=noise(3, 2, 9), weight=noise(2, 2, 3), bias=noise(2), dy=noise(3, 2, 7)),
        ),
        ("max_pool/forward", packed({"kernel": 2, "return_indices": True}, x=noise(2, 3, 8, 8))),
        ("conv_transpose/forward", packed({"stride": 2}, x=noise(2, 3, 5), weight=noise(3, 2, 4))),
        ("activation/backward", packed({"name": "gelu"}, x=noise(2, 3, 4), dy=noise(2, 3, 4))),
    ]

    def ask(number: int) -> tuple[int, dict[str, bytes]]:
        path, body = requests[number % len(requests)]
        found = arrays(client.post(f"/v1/{path}", content=body, headers=MSGPACK))
        return number % len(requests), {name: each.tobytes() for name, each in found.items()}

    alone = dict(ask(number) for number in range(len(requests)))
    with ThreadPoolExecutor(24) as crowd:
        for which, found in crowd.map(ask, range(240)):
            assert found == alone[which]


def test_a_client_that_hangs_up_is_noticed(service: Running, client: httpx.Client) -> None:
    gone = 'convoke_requests_total{action="forward",operation="conv",status="499"}'
    before = metric(client, gone)
    body = slow_body()
    head = f"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    with Raw(service.url) as raw:
        raw.send(head.encode() + b"Content-Type: application/msgpack\r\n\r\n" + body)
        until(lambda: metric(client, "convoke_requests_in_flight") == 1)
    until(lambda: metric(client, gone) == before + 1)
    assert metric(client, "convoke_held_bytes") == 0


def test_deadlines_are_kept_while_computing(client: httpx.Client) -> None:
    headers = MSGPACK | {"X-Deadline-Ms": "30"}
    body = slow_body()
    started = time.monotonic()
    assert client.post("/v1/conv/forward", content=body, headers=MSGPACK).status_code == 200
    whole, started = time.monotonic() - started, time.monotonic()
    answer = client.post("/v1/conv/forward", content=body, headers=headers)
    assert answer.status_code == 504, answer.headers
    assert time.monotonic() - started < 1 + whole
