"""Every hostile request gets its status and an explanation, and the next honest one its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator

import msgpack
import pytest

from app.scribe.desks import LARGE_BYTES, QUICK_BYTES
from benchmarks.stress.client import wire
from benchmarks.stress.crowd import Crowd
from benchmarks.stress.service import Service
from benchmarks.stress.traffic import recorded
from tests.faults.bare import SPOKEN
from tests.faults.hostile import JSON, POOL, REQUESTS, Hostile, good, spoken
from tests.faults.logs import logged

PATIENCE_S = 30.0
"""Most of them take milliseconds; only a body that is refused unread is waited for, for 2 s."""

LONGEST_PROBLEM = 8 << 10
"""However much was sent, an explanation is short."""

STACKS = ("Traceback", 'File "', "site-packages", ".py", "uvicorn", "starlette", "0x7f")


@pytest.fixture(scope="module")
def watched(service: Service) -> Iterator[Service]:
    """The service, which must be as it was when all is over."""
    _say(service, good()[0])
    # So that every worker has mapped all that it ever does.
    assert asyncio.run(Crowd(service.port, recorded()).ask(16, 160)).only_right()
    for size in (LARGE_BYTES, QUICK_BYTES):  # so that there are scribes
        large = b'{"config": {"kernel": 1}, "x": [[[1]]]}'.ljust(size)
        assert _say(service, spoken(Hostile("large", 200, POOL, large, media=JSON)))[0] == 200
    before, workers = service.held(), service.workers
    yield service
    after = service.held()
    assert service.workers == workers, "a worker had to be replaced"
    assert after.processes == before.processes
    assert after.files <= before.files + 2
    assert after.memory - before.memory < 256 << 20
    lines = [json.loads(line) for line in logged(service).splitlines()]
    assert not [line for line in lines if line.get("status", 0) >= 500 and line["status"] != 504]
    ours = [line for line in lines if line["logger"] != "uvicorn.error"]
    assert not [line for line in ours if line["level"] in ("warning", "error")]


def _say(service: Service, data: bytes) -> tuple[int, bytes, bytes]:
    """Say something; returns status, head and body of the only answer."""

    async def talk() -> bytes:
        async with wire(service.port) as raw:
            with contextlib.suppress(ConnectionError):  # refused before it was whole
                await raw.say(data)
            return await asyncio.wait_for(raw.ended(), PATIENCE_S)

    said = asyncio.run(talk())
    assert said.count(b"HTTP/1.1 ") <= 1, "more than one answer"
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head[9:12] or 0), head, body


def _check_problem(status: int, head: bytes, body: bytes) -> dict[str, object]:
    assert b"application/problem+json" in head
    assert b"server:" not in head.lower()
    assert len(body) <= LONGEST_PROBLEM
    problem: dict[str, object] = json.loads(body)
    assert problem["status"] == status
    assert problem["request_id"]
    assert problem["title"]
    assert problem["detail"]
    text = body.decode().lower()
    assert not [stack for stack in STACKS if stack.lower() in text]
    return problem


def _check_alive(service: Service) -> None:
    request, y = good()
    status, _, body = _say(service, request)
    assert status == 200
    assert msgpack.unpackb(body)["y"]["data"] == y


def test_there_are_enough_of_them() -> None:
    names = [hostile.name for hostile in REQUESTS] + [name for name, _, _ in SPOKEN]
    assert len(names) == len(set(names)) >= 250


@pytest.mark.parametrize("hostile", REQUESTS, ids=lambda hostile: hostile.name)
def test_a_hostile_request(watched: Service, hostile: Hostile) -> None:
    started = time.monotonic()
    status, head, body = _say(watched, spoken(hostile))
    assert time.monotonic() - started < PATIENCE_S
    assert status == hostile.status, body[:500]
    if status >= 400 and hostile.method != "HEAD":
        problem = _check_problem(status, head, body)
        if hostile.slug:
            assert problem["type"] == f"/problems/{hostile.slug}"
        errors = problem["errors"]
        assert isinstance(errors, list)
        if hostile.loc:
            assert errors[0]["loc"][: len(hostile.loc)] == list(hostile.loc)
        if status == 422:
            assert all(error["loc"] and error["msg"] for error in errors)
            assert errors
    _check_alive(watched)


@pytest.mark.parametrize(("name", "status", "said"), SPOKEN, ids=[name for name, _, _ in SPOKEN])
def test_what_is_hardly_http(watched: Service, name: str, status: int, said: bytes) -> None:
    if status == 0:

        async def hang_up() -> None:
            async with wire(watched.port) as raw:
                await raw.say(said)

        asyncio.run(hang_up())
    else:
        got, head, body = _say(watched, said)
        assert got == status, (name, body[:500])
        if status >= 400:
            _check_problem(status, head, body)
    _check_alive(watched)
