"""Room in the queue: who has it from the head on, and who is refused before the body is read."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any

import msgpack
import numpy as np
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app import dispatcher, reservation
from tests.app.asgi import Answer, Client, ask, running

MSGPACK = {"content-type": "application/vnd.msgpack"}
JSON = {"content-type": "application/json"}


def test_who_was_told_to_come_again_has_a_place_that_newcomers_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: now))
    pool = json.dumps({"config": {"kernel": 2}, "x": [[[1.0, 5.0, 2.0, 4.0]]]}).encode()

    async def scenario() -> None:
        nonlocal now
        async with running(max_queue_requests="2") as app:
            admission = app.state.dispatcher._admission

            async def ask_as(name: str) -> Answer:
                headers = JSON | {"x-request-id": name}
                return await ask(app, "POST", "/v1/max_pool/forward", headers, pool)

            for _ in range(2):
                admission.acquire(1, now)
            refused = await ask_as("told")
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            admission.release(1, now)
            now += 0.9
            assert (await ask_as("new")).status == 503
            assert (await ask_as("told")).status == 200

    asyncio.run(scenario())


def test_tensors_that_the_queue_has_no_bytes_for_are_refused_unread() -> None:
    body = msgpack.packb({"config": {"kernel": 2}, "x": noise_of(1 << 19)})

    async def scenario() -> None:
        async with running(max_queue_bytes="1MiB") as app:
            app.state.dispatcher._admission.acquire(700 << 10, time.monotonic())
            await refused_unread(app, body)

    asyncio.run(scenario())


def test_a_body_like_one_before_is_refused_unread_for_its_outputs_too() -> None:
    body = msgpack.packb({"config": {"kernel": 1}, "x": noise_of(1 << 19)})
    headers = MSGPACK | {"content-length": str(len(body))}

    async def scenario() -> None:
        async with running(max_queue_bytes="2MiB") as app:
            admission = app.state.dispatcher._admission
            assert (await ask(app, "POST", "/v1/max_pool/forward", headers, body)).status == 200
            admission.acquire(1200 << 10, time.monotonic())  # 848 KiB are left, of 1 MiB
            await refused_unread(app, body)

    asyncio.run(scenario())


def test_what_costs_too_much_is_expected_of_nobody() -> None:
    """Else one such request would have all of its length refused for as long as anybody is served."""

    def body(samples: int, stride: int) -> bytes:
        x = noise_of(4 * samples)
        weight = {"dtype": "float32", "shape": [1, 1, 1], "data": bytes(4)}
        return msgpack.packb({"config": {"stride": stride}, "x": x, "weight": weight})

    fine, too_much = body(1 << 18, 1), body((1 << 18) - 1, 10**9)
    assert len(fine) == len(too_much)
    headers, path = MSGPACK | {"content-length": str(len(fine))}, "/v1/conv_transpose/forward"

    async def scenario() -> None:
        async with running() as app:
            app.state.dispatcher._admission.acquire(1, time.monotonic())
            assert (await ask(app, "POST", path, headers, too_much)).status == 422
            assert (await ask(app, "POST", path, headers, fine)).status == 200

    asyncio.run(scenario())


def test_a_large_body_that_comes_has_its_place_and_one_that_does_not_loses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = msgpack.packb({"config": {"kernel": 2}, "x": noise_of(1 << 19)})
    headers = MSGPACK | {"content-length": str(len(body))}
    path = "/v1/max_pool/forward"
    monkeypatch.setattr(reservation, "LOOK_S", 0.1)
    monkeypatch.setattr(reservation, "FAST_BYTES", 0)  # nobody is too slow, for now

    async def scenario() -> None:
        async with running(max_queue_bytes="4MiB") as app:
            admission = app.state.dispatcher._admission
            admission.acquire(3200 << 10, time.monotonic())
            dawdling = Client([])  # announces its body, and sends none of it
            task = asyncio.create_task(ask(app, "POST", path, headers, dawdling))
            while not admission.reserved:
                await asyncio.sleep(0)
            await refused_unread(app, body)
            small = {"config": {"kernel": 2}, "x": noise_of(1 << 10)}
            assert (await ask(app, "POST", path, MSGPACK, msgpack.packb(small))).status == 200
            monkeypatch.setattr(reservation, "FAST_BYTES", 1)
            while admission.reserved:
                await asyncio.sleep(0.01)
            assert (await ask(app, "POST", path, headers, body)).status == 200
            dawdling.gone.set()
            await task
            assert (admission.reserved, admission.requests, admission.nbytes) == (0, 1, 3200 << 10)

    asyncio.run(scenario())


class Hesitant(Client):
    """Sends nothing until it is told to go on."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__(pieces)
        self.goes_on = asyncio.Event()

    async def receive(self) -> Message:
        await self.goes_on.wait()
        return await super().receive()


def test_who_takes_the_room_while_a_body_comes_does_not_take_its_place() -> None:
    body = msgpack.packb({"config": {"kernel": 2}, "x": noise_of(1 << 19)})
    headers = MSGPACK | {"content-length": str(len(body))}

    path = "/v1/max_pool/forward"

    async def scenario() -> None:
        async with running(max_queue_bytes="4MiB") as app:
            admission = app.state.dispatcher._admission
            # From now on it is known how much such a body's tensors come to.
            assert (await ask(app, "POST", path, headers, body)).status == 200
            client = Hesitant([body])
            task = asyncio.create_task(ask(app, "POST", path, headers, client))
            while not admission.reserved:
                await asyncio.sleep(0)
            admission.acquire(1 << 18, time.monotonic())
            admission.nbytes += 4 << 20  # by which there is no room any more
            client.goes_on.set()
            assert (await task).status == 200
            assert (admission.reserved, admission.requests) == (0, 1)

    asyncio.run(scenario())


def test_a_reservation_ends_with_a_request_that_fails() -> None:
    """Whatever it fails of: what it has no key for, its body, or its client's patience."""
    body = b"\xc1" * (1 << 19)
    headers = MSGPACK | {"content-length": str(len(body))}

    async def scenario() -> None:
        async with running() as app:
            admission = app.state.dispatcher._admission
            path = "/v1/max_pool/forward"
            assert (await ask(app, "POST", path, headers, body)).status == 400
            assert (admission.reserved, admission.requests, admission.nbytes) == (0, 0, 0)
            leaving = Client([])
            leaving.gone.set()
            await ask(app, "POST", path, headers, leaving)
            assert (admission.reserved, admission.requests, admission.nbytes) == (0, 0, 0)

    asyncio.run(scenario())


def test_what_a_caller_was_refused_is_expected_of_nobody_else() -> None:
    """Else whoever asks for more than fits now has all refused whose bodies are as long."""

    def body(stride: int) -> bytes:
        weight = {"dtype": "float32", "shape": [64, 1, 1], "data": bytes(256)}
        config = {"stride": stride}
        return msgpack.packb({"config": config, "x": noise_of(1 << 18), "weight": weight})

    fits, does_not = body(99), body(1)
    assert len(fits) == len(does_not)
    path, headers = "/v1/conv/forward", MSGPACK | {"content-length": str(len(fits))}

    async def scenario() -> None:
        async with running(max_queue_bytes="8MiB") as app:
            app.state.dispatcher._admission.acquire(1 << 20, time.monotonic())
            for read in (len(does_not), 0):
                client = Client([does_not])
                refused = await ask(app, "POST", path, headers, client, address="192.0.2.2")
                assert (refused.status, client.read) == (503, read)
            assert (await ask(app, "POST", path, headers, fits)).status == 200

    asyncio.run(scenario())


async def refused_unread(app: FastAPI, body: bytes) -> None:
    """A pool of such a body is refused for want of room, and nothing of it is read."""
    client = Client([body])
    headers = MSGPACK | {"content-length": str(len(body))}
    answer = await ask(app, "POST", "/v1/max_pool/forward", headers, client)
    assert answer.status == 503
    assert answer.json["type"] == "/problems/queue-full"
    assert client.read == 0


def noise_of(nbytes: int) -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal((1, 1, nbytes // 4), np.float32)
    return {"dtype": "float32", "shape": x.shape, "data": x.tobytes()}
