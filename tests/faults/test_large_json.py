"""Large JSON: answered as small is, and nobody else waits for it."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.scribe.desks import LARGE_BYTES, LARGE_NUMBERS, MIDDLE_BYTES, MIDDLE_NUMBERS
from benchmarks.stress.service import Service, kill, running, until

JSON = {"Content-Type": "application/json"}
WIDTH = LARGE_NUMBERS + 7


def numbers(count: int) -> list[Any]:
    """Such as JSON can say in several ways, and some that are none."""
    random = np.random.default_rng(count)
    made: list[Any] = random.standard_normal(count).tolist()
    made[1:5] = [0, "NaN", "-Infinity", 1e-30]
    return made


POOL = {"kernel": 2, "stride": 1}
TENSOR = {"dtype": "float64", "shape": [1, 1, WIDTH], "data": numbers(WIDTH)}
RAGGED = [[[*numbers(WIDTH), [1]]]]

BODIES: dict[str, tuple[str, Any]] = {
    "lists": ("max_pool/forward", {"config": POOL, "x": TENSOR}),
    "bare lists": ("max_pool/forward", {"config": POOL, "x": [[numbers(WIDTH)]]}),
    "base64": (
        "activation/forward",
        {
            "config": {"name": "relu"},
            "x": {
                "dtype": ">f8",
                "shape": [1, 1, WIDTH],
                "data": base64.b64encode(np.arange(WIDTH).astype(">f8").tobytes()).decode(),
            },
        },
    ),
    "backward": (
        "conv/backward",
        {
            "x": {**TENSOR, "dtype": "float32"},
            "weight": [[[1, -2, 0.5]]],
            "dy": [[numbers(WIDTH - 2)]],
            "wants": ["dweight", "y"],
        },
    ),
    "ragged": ("max_pool/forward", {"config": POOL, "x": RAGGED}),
    "unknown key": ("max_pool/forward", {"config": POOL, "x": TENSOR, "y\u00e9": 1}),
    "not finite": ("max_pool/forward", {"config": {"kernel": 1e308, "name": "x" * 900}, "x": TENSOR}),
    "plan of tensors": ("max_pool/plan", {"config": POOL, "x": TENSOR}),
    "plan": ("max_pool/plan", {"config": POOL, "shapes": {"x": [1, 1, 9]}, "junk": numbers(WIDTH)}),
    "a list": ("max_pool/forward", numbers(WIDTH)),
}  # fmt: skip
TEXTS = {
    **{name: (path, json.dumps(body).encode()) for name, (path, body) in BODIES.items()},
    "cut short": ("max_pool/forward", json.dumps(BODIES["lists"][1]).encode()[:-1]),
    "not UTF-8": ("max_pool/forward", b'{"' + b"x" * LARGE_BYTES + b'\xff": 1}'),
    "too many lists": ("max_pool/forward", b'{"x": ' + b"[" * ((1 << 20) + 1)),
}


@pytest.fixture(scope="module", name="clients")
def _clients(service: Service) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """One of a service that has a scribe, and one of a service that reads in its loop."""
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(running("--workers", "0"))
        yield (
            stack.enter_context(client_of(service)),
            stack.enter_context(client_of(alone)),
        )


def client_of(service: Service) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=300)


@pytest.mark.parametrize("accept", ["application/json", "application/json; tensors=base64"])
@pytest.mark.parametrize("name", TEXTS)
def test_it_is_answered_as_in_the_event_loop(
    clients: tuple[httpx.Client, httpx.Client], name: str, accept: str
) -> None:
    path, body = TEXTS[name]
    assert len(body) >= LARGE_BYTES
    headers = {**JSON, "Accept": accept, "X-Request-Id": "the-same"}
    there, here = (each.post(f"/v1/{path}", content=body, headers=headers) for each in clients)
    assert there.status_code == here.status_code
    assert there.content == here.content
    assert there.headers.keys() == here.headers.keys()


SLOW = b'{"config": {"kernel": 1}, "x": [[' + b",".join([b"[1]"] * 1_000_000) + b"]]}"
"""Takes a scribe a good part of a second."""


def test_others_are_answered_while_it_is_read(service: Service) -> None:
    with client_of(service) as client, ThreadPoolExecutor(1) as pool:
        slow = ask(pool, service)
        answered = 0
        while not slow.done():
            assert client.get("/livez").status_code == 200
            answered += 1
        assert slow.result().status_code == 200
    assert answered > 10


def test_several_of_middle_size_are_answered_as_one_alone(service: Service) -> None:
    body = json.dumps({"config": {"name": "relu"}, "x": [[numbers(MIDDLE_NUMBERS // 4)]]})
    assert MIDDLE_BYTES <= len(body) < LARGE_BYTES

    def outputs(_: int) -> Any:
        with client_of(service) as client:
            answer = client.post("/v1/activation/forward", content=body, headers=JSON)
            return answer.json()["y"]

    alone = outputs(0)
    with ThreadPoolExecutor(8) as pool:
        while not service.scribes:
            assert all(each == alone for each in pool.map(outputs, range(32)))
        assert all(each == alone for each in pool.map(outputs, range(32)))


def ask(pool: ThreadPoolExecutor, service: Service, **headers: str) -> Future[httpx.Response]:
    def post() -> httpx.Response:
        with client_of(service) as client:
            return client.post("/v1/max_pool/forward", content=SLOW, headers=JSON | headers)

    return pool.submit(post)


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGSTOP])
def test_it_is_answered_when_the_scribe_dies(service: Service, signal_: signal.Signals) -> None:
    def gone(pids: set[int]) -> bool:
        return pids.isdisjoint(service.scribes)

    with ThreadPoolExecutor(4) as pool:
        slow = [ask(pool, service) for _ in range(4)]
        for _ in range(3):
            until(lambda: service.scribes)
            pids = set(service.scribes)
            for pid in pids:
                kill(pid, signal_)
            until(partial(gone, pids))
        assert {each.result().status_code for each in slow} == {200}


def test_a_deadline_is_kept_while_it_is_read(service: Service) -> None:
    with ThreadPoolExecutor(4) as pool:
        slow = [ask(pool, service, **{"X-Deadline-Ms": "200"}) for _ in range(4)]
        assert 504 in {each.result().status_code for each in slow}
        assert ask(pool, service).result().status_code == 200


def test_more_than_may_wait_is_refused_with_a_time() -> None:
    with (
        running("--workers", "1", max_json_waiting_bytes="5MiB") as service,
        ThreadPoolExecutor(6) as pool,
    ):
        answers = [each.result() for each in [ask(pool, service) for _ in range(6)]]
        refused = [each for each in answers if each.status_code == 503]
        assert {each.status_code for each in answers} == {200, 503}
        for each in refused:
            assert int(each.headers["Retry-After"]) >= 1
            assert each.json()["type"] == "/problems/queue-full"


def test_what_is_being_read_at_the_end_is_answered() -> None:
    with running("--workers", "1") as service, ThreadPoolExecutor(1) as pool:
        slow = ask(pool, service)
        until(lambda: service.scribes)
        children = service.children
        assert service.terminate() == 0
        assert slow.result().status_code == 200
        assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
