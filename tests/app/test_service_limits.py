"""The service as its users have it: keys, origins, limits, and what breaks them."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgpack
import pytest

from benchmarks.stress.service import until
from benchmarks.stress.traffic import packed
from tests.app.talking import (
    COMMAND,
    MSGPACK,
    Raw,
    metric,
    noise,
    status_of,
)
from tests.serving import Running, serving

KEYS = "alpha-key,beta-key"


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
        "CONVOKE_MAX_OUTPUT_BYTES": "8MiB",
    }
    with serving(COMMAND, "--workers", "0", environ=environ, log=strict_log) as running:
        yield running


@pytest.fixture
def keyed(strict: Running) -> Iterator[httpx.Client]:
    headers = {"Authorization": "Bearer beta-key"}
    with httpx.Client(base_url=strict.url, timeout=120, headers=headers) as made:
        yield made


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Running]:
    """A service with two places, one of which is kept for a while for those who were told to come again."""
    options = ("--workers", "0", "--max-queue-requests", "2")
    with serving(COMMAND, *options, log=tmp_path / "log") as running:
        yield running


@pytest.fixture
def visitor(narrow: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=narrow.url, timeout=120) as made:
        yield made


def slow_body(padding: int) -> bytes:
    """About a second's work in a MiB."""
    config = {"algorithm": "direct", "padding": padding}
    return packed(config, x=noise(1, 4, 4, 4), weight=noise(64, 4, 31, 31))


@contextlib.contextmanager
def both_places_taken(narrow: Running, visitor: httpx.Client) -> Iterator[None]:
    """For about two seconds, by requests that are answered in the end."""
    # Layers of two kinds, which no batch takes together.
    first, second = slow_body(padding=250), slow_body(padding=260)
    with Raw(narrow.url) as works, Raw(narrow.url) as waits:
        works.send(request("/v1/conv/forward", first))
        until(lambda: metric(visitor, "convoke_held_bytes") == len(first))
        waits.send(request("/v1/conv/forward", second))
        # More than the tensors of the first come to.
        until(lambda: metric(visitor, "convoke_queue_bytes") > 60_000_000)
        yield
        assert b" 200 " in works.answer()[0]
        assert b" 200 " in waits.answer()[0]


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


def test_no_request_is_taken_for_the_body_of_one_that_was_refused_before_it(
    strict: Running,
) -> None:
    """Apache HttpClient 4.5 sends no body after a refusal, and its next request on the connection."""
    head = b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: 40\r\n"
    with Raw(strict.url) as raw:
        raw.send(head + b"Expect: 100-continue\r\n\r\n")
        refusal, _ = raw.answer()
        assert status_of(refusal) == 403
        assert b"connection: close" in refusal.lower()
        raw.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.rest() == b""


def test_a_client_that_sends_on_reads_its_refusal(keyed: httpx.Client) -> None:
    for size in (64 << 10, (64 << 10) + 1, 300 << 10, 3 << 20):
        answer = keyed.post("/v1/conv/forward", content=b"\xc1" * size, headers=MSGPACK)
        assert answer.status_code == (400 if size == 64 << 10 else 413)


def test_a_full_queue_says_when_to_come_back(narrow: Running, visitor: httpx.Client) -> None:
    body = packed({"padding": 3}, x=noise(1, 4, 40, 40), weight=noise(32, 4, 7, 7))

    def ask(_: int) -> httpx.Response:
        return visitor.post("/v1/conv/forward", content=body, headers=MSGPACK)

    with both_places_taken(narrow, visitor), ThreadPoolExecutor(12) as crowd:
        answers = list(crowd.map(ask, range(60)))
    answers.append(ask(60))
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
    narrow: Running, visitor: httpx.Client
) -> None:
    small = packed({"padding": 1}, x=noise(1, 1, 64), weight=noise(1, 1, 3))
    refused = 'convoke_requests_total{action="forward",operation="conv",status="503"}'
    with Raw(narrow.url) as raw:
        with both_places_taken(narrow, visitor):
            for name in ("first", "known", "in-pieces", "once-more"):
                data = request("/v1/conv/forward", small, f"X-Request-Id: {name}")
                cut = len(data) if name != "in-pieces" else len(data) - 200
                raw.send(data[:cut])
                head, body = raw.answer()
                assert b" 503 " in head
                assert f"x-request-id: {name}".encode() in head
                assert json.loads(body)["type"] == "/problems/queue-full"
                raw.send(data[cut:])
            raw.send(
                request(
                    "/v1/max_pool/plan",
                    msgpack.packb({"config": {"kernel": 2}, "shapes": {"x": [1, 1, 4]}}),
                )
            )
            assert b" 200 " in raw.answer()[0]
        time.sleep(int(re.findall(rb"retry-after: (\d+)", head)[0]))
        raw.send(request("/v1/conv/forward", small, "X-Request-Id: once-more"))
        head, body = raw.answer()
        assert b" 200 " in head
        assert b"x-request-id: once-more" in head
        assert len(body) > 4 * 64
        until(lambda: metric(visitor, refused) == 4)


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
    assert re.findall(rb"HTTP/1.1 (\d+) ", answer) == [b"200", b"400"]
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
    answer = keyed.post("/v1/max_pool/forward", json=body, headers={"X-Request-Id": name})
    assert answer.status_code == 200
    until(lambda: name in strict_log.read_text().rpartition("\n")[0])
    lines = [json.loads(line) for line in strict_log.read_text().splitlines()]
    (line,) = (each for each in lines if each.get("request_id") == name)
    assert (line["operation"], line["action"], line["status"]) == ("max_pool", "forward", 200)
    assert {"decode_ms", "queue_ms", "compute_ms", "encode_ms", "ms"} <= line.keys()
    assert line["bytes_in"] > 0 < line["bytes_out"]
    for key in (*KEYS.split(","), "wrong-key", "27182.5"):
        assert key not in strict_log.read_text()
