"""The service as its users have it: a process, a socket, and real requests."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from numpy.typing import NDArray

import engine
from tests.serving import ROOT, Running, serving

COMMAND = (sys.executable, "-m", "app")
MSGPACK = {"Content-Type": "application/vnd.msgpack"}
KEYS = "alpha-key,beta-key"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with two workers and the settings it has by itself."""
    log = tmp_path_factory.mktemp("service") / "log"
    with serving(COMMAND, "--workers", "2", log=log) as running:
        yield running


@pytest.fixture(scope="module")
def strict_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strict") / "log"


@pytest.fixture(scope="module")
def strict(strict_log: Path) -> Iterator[Running]:
    """A service with keys, origins, tight limits, and without worker processes."""
    environ = {
        "CONVOKE_API_KEYS": KEYS,
        "CONVOKE_CORS_ORIGINS": "https://page.example",
        "CONVOKE_ROOT_PATH": "/convoke",
        "CONVOKE_MAX_BODY_BYTES": "64KiB",
        "CONVOKE_MAX_HEADER_BYTES": "4KiB",
        "CONVOKE_MAX_CONNECTIONS": "20",
        "CONVOKE_HEADER_TIMEOUT_S": "1.5",
        "CONVOKE_BODY_TIMEOUT_S": "2",
        "CONVOKE_ANSWER_TIMEOUT_S": "1",
        "CONVOKE_MAX_QUEUE_REQUESTS": "1",
        "CONVOKE_MAX_OUTPUT_BYTES": "8MiB",
    }
    with serving(COMMAND, "--workers", "0", environ=environ, log=strict_log) as running:
        yield running


@pytest.fixture
def client(service: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=120) as made:
        yield made


@pytest.fixture
def keyed(strict: Running) -> Iterator[httpx.Client]:
    headers = {"Authorization": "Bearer beta-key"}
    with httpx.Client(base_url=strict.url, timeout=120, headers=headers) as made:
        yield made


def tensor(array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tobytes()}


def packed(config: dict[str, Any] | None = None, **tensors: NDArray[Any]) -> bytes:
    body: dict[str, Any] = {name: tensor(array) for name, array in tensors.items()}
    made: bytes = msgpack.packb(body if config is None else body | {"config": config})
    return made


def arrays(answer: httpx.Response) -> dict[str, NDArray[Any]]:
    """The tensors of an answer in msgpack."""
    assert answer.status_code == 200, answer.text
    return {
        name: np.frombuffer(value["data"], value["dtype"]).reshape(value["shape"])
        for name, value in msgpack.unpackb(answer.content).items()
        if name != "info"
    }


def noise(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def slow_body() -> bytes:
    """Some 5 GFLOP, which take a good while."""
    config = {"algorithm": "direct", "padding": 3}
    return packed(config, x=noise(1, 16, 160, 160), weight=noise(128, 16, 7, 7))


def slow_small_body() -> bytes:
    """Long products of one row, in a few KiB."""
    config = {"algorithm": "direct", "padding": 400_000}
    return packed(config, x=noise(1, 1, 4), weight=noise(1, 1, 1000))


class Raw:
    """A connection on which anything can be said."""

    def __init__(self, url: str, buffer: int = 1 << 16) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.socket = socket.socket()
        self.socket.settimeout(60)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect((host, int(port)))
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[bytes, bytes]:
        """Head and body of one answer."""
        head = b"".join(iter(self._file.readline, b"\r\n"))
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None
        return head, self._file.read(int(length[1]))

    def rest(self) -> bytes:
        """Everything until the other side hangs up."""
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := self.socket.recv(1 << 16):
                received += piece
        return received


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer[9:12])


# ---- what is computed, and how it comes back


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
    assert client.get("/v1/limits").json()["max_body_bytes"]["value"] == 256 << 20
    assert client.get("/version").json()["contract"] == 1
    assert client.get("/readyz").status_code == client.get("/livez").status_code == 200
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    for path in ("/", "/docs"):
        page = client.get(path)
        assert page.headers["Content-Type"].startswith("text/html")
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert client.head("/").content == b""


def metric(client: httpx.Client, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


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


def until(true: Any, seconds: float = 60.0) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_deadlines_are_kept_while_computing(client: httpx.Client) -> None:
    headers = MSGPACK | {"X-Deadline-Ms": "30"}
    body = slow_body()
    started = time.monotonic()
    assert client.post("/v1/conv/forward", content=body, headers=MSGPACK).status_code == 200
    whole, started = time.monotonic() - started, time.monotonic()
    answer = client.post("/v1/conv/forward", content=body, headers=headers)
    assert answer.status_code == 504, answer.headers
    assert time.monotonic() - started < 1 + whole


# ---- keys, origins, limits


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("", 401),
        ("Basic YTpi", 401),
        ("Bearer", 401),
        ("Bearer wrong-key", 403),
        ("Bearer alpha-ke", 403),
        ("Bearer alpha-key,beta-key", 403),
        ("Bearer alpha-key", 200),
        ("bearer beta-key", 200),
    ],
)
@pytest.mark.parametrize("path", ["/v1/max_pool/plan", "/v1/limits"])
def test_keys(strict: Running, authorization: str | None, status: int, path: str) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    if path.endswith("plan"):
        body = {"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4]}}
        answer = httpx.post(strict.url + path, json=body, headers=headers)
    else:
        answer = httpx.get(strict.url + path, headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/docs", "/problems/", "/"])
def test_the_rest_is_open(strict: Running, path: str) -> None:
    assert httpx.get(strict.url + path).status_code == 200


def test_cors_reaches_answers_errors_and_preflights(strict: Running) -> None:
    origin = {"Origin": "https://page.example"}
    refused = httpx.post(f"{strict.url}/v1/conv/forward", headers=origin)
    assert refused.status_code == 401
    asked = origin | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    preflight = httpx.options(f"{strict.url}/v1/conv/forward", headers=asked)
    assert preflight.status_code == 204
    for answer in (refused, preflight):
        assert answer.headers["Access-Control-Allow-Origin"] == "https://page.example"
    exposed = refused.headers["Access-Control-Expose-Headers"]
    assert {"X-Request-Id", "Server-Timing", "Retry-After"} == set(exposed.split(", "))


def test_a_body_too_large_is_refused_unread(strict: Running) -> None:
    head = (
        b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer beta-key\r\n"
        b"Content-Type: application/msgpack\r\nExpect: 100-continue\r\n"
    )
    with Raw(strict.url) as raw:
        raw.send(head + b"Content-Length: 1000000000\r\n\r\n")
        answer = raw.rest()
    assert status_of(answer) == 413
    assert b"100 Continue" not in answer
    assert b"connection: close" in answer.lower()
    with Raw(strict.url) as raw:
        raw.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(10_000):  # without end, as far as we are concerned
                raw.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert b" 413 " in raw.rest()


def test_a_client_that_sends_on_reads_its_refusal(keyed: httpx.Client) -> None:
    for size in (64 << 10, (64 << 10) + 1, 300 << 10, 3 << 20):
        answer = keyed.post("/v1/conv/forward", content=b"\xc1" * size, headers=MSGPACK)
        assert answer.status_code == (400 if size == 64 << 10 else 413)


def test_a_full_queue_says_when_to_come_back(keyed: httpx.Client) -> None:
    body = packed({"padding": 3}, x=noise(1, 4, 40, 40), weight=noise(32, 4, 7, 7))

    def ask(_: int) -> httpx.Response:
        return keyed.post("/v1/conv/forward", content=body, headers=MSGPACK)

    with ThreadPoolExecutor(12) as crowd:
        answers = list(crowd.map(ask, range(60)))
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 503}
    for answer in answers:
        if answer.status_code == 503:
            assert answer.json()["type"] == "/problems/queue-full"
            assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 5000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 3000, 431),
        (b"GET /" + b"y" * 300_000, 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", 408),
    ],
)
def test_what_never_becomes_a_request_is_refused_as_a_problem(
    strict: Running, said: bytes, status: int
) -> None:
    with Raw(strict.url) as raw:
        with contextlib.suppress(ConnectionError):
            raw.send(said)
        head, _, body = raw.rest().partition(b"\r\n\r\n")
    assert status_of(head) == status
    problem = json.loads(body)
    assert problem["status"] == status
    lines = (line.partition(": ") for line in head.decode().split("\r\n")[1:])
    headers = {name.lower(): value for name, _, value in lines}
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-request-id"] == problem["request_id"]
    assert headers["x-content-type-options"] == "nosniff"
    assert re.search(r"total;dur=[\d.]+$", headers["server-timing"])


def test_a_body_that_dawdles_is_given_up(strict: Running) -> None:
    with Raw(strict.url) as raw:
        raw.send(
            b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer beta-key\r\n"
            b"Content-Type: application/msgpack\r\nContent-Length: 10\r\n\r\nx"
        )
        assert status_of(raw.rest()) == 408


def test_trailers_are_no_headers(strict: Running) -> None:
    """Or else a key could be brought after the check for it, and memory be had for the asking."""
    with Raw(strict.url) as raw:
        raw.send(
            b"POST /v1/max_pool/plan HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"0\r\nAuthorization: Bearer beta-key\r\n\r\n"
        )
        assert status_of(raw.rest()) == 401
    with Raw(strict.url) as raw:
        with contextlib.suppress(ConnectionError):
            raw.send(
                b"POST /v1/max_pool/plan HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer beta-key\r\n"
                b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"0\r\n" + b"X: y\r\n" * 3000
            )
        assert status_of(raw.rest()) in (400, 431)


def request(path: str, body: bytes, *headers: str) -> bytes:
    """A request in msgpack as it goes over the wire, with a key."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Authorization: Bearer beta-key",
        "Content-Type: application/msgpack",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_an_answer_that_nobody_takes_is_given_up(strict: Running, keyed: httpx.Client) -> None:
    given_up = 'convoke_rejects_total{reason="answer-not-taken"}'
    before = metric(keyed, given_up)
    body = packed({"padding": 900_000}, x=noise(1, 1, 4), weight=noise(1, 1, 1))
    with Raw(strict.url, buffer=1 << 12) as raw:
        raw.send(request("/v1/conv/forward", body))
        until(lambda: metric(keyed, "convoke_held_bytes") > 7_000_000)
        until(lambda: metric(keyed, given_up) == before + 1)
        until(lambda: metric(keyed, "convoke_held_bytes") == 0)


def test_an_answer_that_is_taken_slowly_arrives_whole(strict: Running) -> None:
    body = packed({"padding": 900_000}, x=noise(1, 1, 4), weight=noise(1, 1, 1))
    size = 0
    with Raw(strict.url, buffer=1 << 12) as raw:
        raw.send(request("/v1/conv/forward", body, "Connection: close"))
        end = time.monotonic() + 2.5  # longer than an answer may lie untouched
        while piece := raw.socket.recv(1 << 12):
            size += len(piece)
            if time.monotonic() < end:
                time.sleep(0.01)
    assert size > 4 * 1_800_000


def test_what_is_turned_away_unread_leaves_the_connection_as_it_was(
    strict: Running, keyed: httpx.Client
) -> None:
    small = packed({"padding": 1}, x=noise(1, 1, 64), weight=noise(1, 1, 3))
    refused = 'convoke_requests_total{action="forward",operation="conv",status="503"}'
    before, asked = metric(keyed, refused), 0
    with Raw(strict.url) as holds, Raw(strict.url) as raw:
        holds.send(4 * request("/v1/conv/forward", slow_small_body()))
        until(lambda: metric(keyed, "convoke_held_bytes") > 1000)
        for name in ("first", "known", "in-pieces", "once-more"):
            data = request("/v1/conv/forward", small, f"X-Request-Id: {name}")
            cut = len(data) if name != "in-pieces" else len(data) - 200
            raw.send(data[:cut])
            head, body = raw.answer()
            assert b" 503 " in head
            assert f"x-request-id: {name}".encode() in head
            assert json.loads(body)["type"] == "/problems/queue-full"
            raw.send(data[cut:])
            asked += 1
        raw.send(
            request(
                "/v1/max_pool/plan",
                msgpack.packb({"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4]}}),
            )
        )
        assert b" 200 " in raw.answer()[0]
        for _ in range(4):
            assert b" 200 " in holds.answer()[0]
        raw.send(request("/v1/conv/forward", small, "X-Request-Id: let-in"))
        head, body = raw.answer()
        assert b" 200 " in head
        assert b"x-request-id: let-in" in head
        assert len(body) > 4 * 64
    until(lambda: metric(keyed, refused) == before + asked)


def test_pipelined_requests_are_answered_in_order(strict: Running) -> None:
    def asked(name: str, *more: str) -> bytes:
        body: bytes = msgpack.packb({"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4]}})
        return request("/v1/max_pool/plan", body, f"X-Request-Id: {name}", *more)

    with Raw(strict.url) as raw:
        raw.send(asked("one") + asked("two") + asked("three", "Connection: close"))
        found = re.findall(rb"x-request-id: (\w+)", raw.rest())
    assert found == [b"one", b"two", b"three"]


def test_nonsense_after_a_request_does_not_cost_its_answer(strict: Running) -> None:
    body = packed({"padding": 3}, x=noise(1, 4, 40, 40), weight=noise(32, 4, 7, 7))
    with Raw(strict.url) as raw:
        raw.send(request("/v1/conv/forward", body) + b"nonsense\r\n\r\n")
        answer = raw.rest()
    assert status_of(answer) == 200
    assert answer.count(b"HTTP/1.1") == 1
    assert len(answer) > 4 * 32 * 40 * 40


def test_connections_are_counted(strict: Running) -> None:
    with contextlib.ExitStack() as held:
        raws = [held.enter_context(Raw(strict.url)) for _ in range(25)]
        answers = [raw.rest() for raw in raws]  # those never used are closed without a word
    statuses = [status_of(answer) for answer in answers if answer]
    assert set(statuses) == {503}
    assert statuses.count(503) >= 5


def test_the_log_tells_each_request_and_no_key(strict_log: Path, keyed: httpx.Client) -> None:
    name = "to-be-found-in-the-log"
    body = {"config": {"kernel": 2}, "x": [[[1.25, 27182.5]]]}
    keyed.post("/v1/max_pool/forward", json=body, headers={"X-Request-Id": name})
    until(lambda: name in strict_log.read_text())
    lines = [json.loads(line) for line in strict_log.read_text().splitlines()]
    (line,) = (each for each in lines if each.get("request_id") == name)
    assert (line["operation"], line["action"], line["status"]) == ("max_pool", "forward", 200)
    assert {"decode_ms", "queue_ms", "compute_ms", "encode_ms", "ms"} <= line.keys()
    assert line["bytes_in"] > 0 < line["bytes_out"]
    for key in (*KEYS.split(","), "wrong-key", "27182"):
        assert key not in strict_log.read_text()


# ---- beginning and end


def children(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(each) for each in listed.split()}


def test_sigterm_answers_what_is_under_way(tmp_path: Path) -> None:
    with serving(COMMAND, "--workers", "1", log=tmp_path / "log") as running:
        workers = children(running.process.pid)
        body = slow_body()
        with (
            httpx.Client(base_url=running.url, timeout=60) as client,
            ThreadPoolExecutor() as crowd,
        ):
            asked = [
                crowd.submit(client.post, "/v1/conv/forward", content=body, headers=MSGPACK)
                for _ in range(4)
            ]
            until(lambda: metric(client, "convoke_requests_in_flight") == 4)
            running.process.send_signal(signal.SIGTERM)
            until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
            late = httpx.post(f"{running.url}/v1/conv/forward", content=body, headers=MSGPACK)
            assert late.status_code == 503
            assert late.json()["type"] == "/problems/shutting-down"
            assert late.headers["Connection"] == "close"
            assert len({arrays(each.result())["y"].tobytes() for each in asked}) == 1
        assert running.process.wait(60) == 0
        assert running.process.stdout is not None
        assert running.process.stdout.read() == ""
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_service_ends_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with (
        serving(COMMAND, "--workers", "0", log=tmp_path / "log") as running,
        httpx.Client(base_url=running.url) as client,
    ):
        assert client.get("/livez").status_code == 200  # and the connection stays open
        running.process.send_signal(number)
        assert running.process.wait(60) == 0


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    with serving(COMMAND, "--workers", "1", log=tmp_path / "log") as running:
        workers = children(running.process.pid)
        with Raw(running.url) as raw:
            raw.send(b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n")
            raw.send(b"Content-Type: application/msgpack\r\n\r\n")
            until(lambda: metric_at(running.url, "convoke_requests_in_flight") == 1)
            running.process.send_signal(signal.SIGTERM)
            until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
            running.process.send_signal(signal.SIGTERM)
            running.process.wait(20)  # less than the drain may take
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in (tmp_path / "log").read_text()


def metric_at(url: str, series: str) -> float:
    with httpx.Client(base_url=url) as client:
        return metric(client, series)


def test_an_address_in_use_is_refused_in_a_line(service: Running) -> None:
    port = service.url.rsplit(":", 1)[1]
    command = [*COMMAND, "--port", port]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"convoke: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_a_log_that_nobody_reads_stops_nobody() -> None:
    with subprocess.Popen(
        [*COMMAND, "--port", "0", "--workers", "0"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("CONVOKE_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with httpx.Client(base_url=url, timeout=60) as client:
            for _ in range(600):  # more lines than the pipe holds
                assert client.get("/livez").status_code == 200
        process.terminate()
        assert process.wait(60) == 0
        process.stderr.close() if process.stderr else None
