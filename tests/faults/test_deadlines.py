"""A deadline is kept wherever the request is when it passes, and an answer never comes after it."""

from __future__ import annotations

import asyncio
import itertools
import random
import time

import numpy as np

from benchmarks.stress.client import Reply, ask, request, wire
from benchmarks.stress.service import Service, until
from benchmarks.stress.traffic import large, packed, recorded
from tests.faults.metrics import metric, metric_at
from tests.faults.pace import slack

PATH = "/v1/conv/forward"

HEAVY = packed(
    {"padding": 16},
    x=np.ones((1, 1, 64, 64), np.float32),
    weight=np.ones((64, 1, 33, 33), np.float32),
)
"""Little to send, and too much work to pass what is large."""

SERIES = 'convoke_batch_requests_sum{action="forward",operation="conv"}'
DROPPED = 'convoke_dropped_total{reason="deadline"}'


async def timed(service: Service, path: str, body: bytes, within_ms: int) -> tuple[Reply, float]:
    started = time.monotonic()
    reply = await ask(service.port, path, body, {"X-Deadline-Ms": str(within_ms)})
    return reply, time.monotonic() - started


def late(reply: Reply) -> bool:
    return (reply.status, reply.slug) == (504, "deadline-exceeded")


def test_in_the_queue_it_is_answered_in_time_and_never_computed(service: Service) -> None:
    spare = slack(service)
    computed, dropped = metric(service, SERIES), metric(service, DROPPED)

    async def scenario() -> list[tuple[Reply, float]]:
        # As many as there are workers, and more: the queue does not move.
        body = large(60.0)
        held = [asyncio.create_task(ask(service.port, PATH, body)) for _ in range(4)]
        while await metric_at(service.port, "convoke_queue_requests") < 2:
            await asyncio.sleep(0.01)
        late = await asyncio.gather(*(timed(service, PATH, HEAVY, 200) for _ in range(3)))
        assert not any(task.done() for task in held), "the queue has moved"
        assert {reply.status for reply in await asyncio.gather(*held)} == {200}
        return late

    results = asyncio.run(scenario())
    assert metric(service, SERIES) == computed + 4
    assert metric(service, DROPPED) == dropped + 3
    most = 0.2 + spare()
    for reply, seconds in results:
        assert late(reply)
        assert 0.2 <= seconds < most


def test_while_running_it_is_stopped_and_the_workers_are_free_again(service: Service) -> None:
    spare = slack(service)

    async def computed() -> float:
        started = time.monotonic()
        reply = await ask(service.port, PATH, large(0.2))
        assert reply.status == 200
        return time.monotonic() - started

    async def scenario() -> tuple[list[tuple[Reply, float]], float, float]:
        before = await computed()
        late = await asyncio.gather(*(timed(service, PATH, large(200.0), 300) for _ in range(3)))
        return late, before, await computed()

    results, before, after = asyncio.run(scenario())
    most = 0.3 + spare() + 10 * before
    for reply, seconds in results:
        assert late(reply)
        assert 0.3 <= seconds < most
    assert after < 2.0 + 5 * before, "the workers go on with what nobody waits for"


def test_while_it_is_sent(service: Service) -> None:
    spare = slack(service)

    async def scenario() -> Reply:
        async with wire(service.port) as connection:
            whole = request(PATH, large(0.2), {"X-Deadline-Ms": "200"})
            await connection.say(whole[: len(whole) // 2])
            return await connection.reply()

    started = time.monotonic()
    assert late(asyncio.run(scenario()))
    seconds = time.monotonic() - started
    assert seconds < 0.2 + spare()


def test_no_answer_comes_late(service: Service) -> None:
    spare = slack(service)
    given = recorded(("msgpack",))
    draw = random.Random(5)

    async def some() -> list[tuple[int, bool, float]]:
        return [await one() for _ in range(20)]

    async def one() -> tuple[int, bool, float]:
        each, within_ms = draw.choice(given), draw.randrange(0, 80)
        headers = each.headers | {"X-Deadline-Ms": str(within_ms)}
        async with wire(service.port) as connection:
            started = time.monotonic()
            reply = await connection.ask(each.path, each.body, headers)
        overdue = time.monotonic() - started - within_ms / 1e3
        return reply.status, each.fits(reply) if reply.status == 200 else late(reply), overdue

    async def scenario() -> list[tuple[int, bool, float]]:
        return list(itertools.chain(*await asyncio.gather(*(some() for _ in range(16)))))

    results = asyncio.run(scenario())
    assert {status for status, _, _ in results} == {200, 504}
    assert all(as_expected for _, as_expected, _ in results)
    assert max(overdue for status, _, overdue in results if status == 200) < spare()
    until(lambda: metric(service, "convoke_queue_requests") == 0)
