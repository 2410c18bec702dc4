"""Few who ask for little are answered by the server itself: with the same bits and errors."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from app.few import FEW
from benchmarks.stress.client import Reply, ask, request, wire
from benchmarks.stress.crowd import Crowd
from benchmarks.stress.service import Service, kill, running
from benchmarks.stress.traffic import Recorded, packed, recorded
from tests.faults.metrics import metric, metric_at
from tests.faults.work import for_a_worker, for_the_loop

RESTARTS = 'convoke_worker_restarts_total{reason="suspended"}'

TRIES = 5
"""What is quick takes long now and then, where others want the processor, and is left to workers then."""


@contextlib.contextmanager
def suspended(service: Service) -> Iterator[None]:
    """Nobody but the server goes on; a worker is replaced only once it is needed."""
    pids = service.workers
    for pid in pids:
        kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def alone(asked: Callable[[Service], Awaitable[bool]]) -> Iterator[Service]:
    """A service that has answered by itself what was asked; it has to be right each time that it is.

    Each try has a service of its own: a worker that is only starting would be replaced for being suspended.
    """
    for _ in range(TRIES):
        with running("--workers", "1") as service:
            with suspended(service):
                assert asyncio.run(asyncio.wait_for(asked(service), 60.0))
                by_itself = metric(service, RESTARTS) == 0
            if by_itself:
                yield service
                return
    pytest.fail(f"workers were needed {TRIES} times")


async def one_after_the_other(service: Service) -> bool:
    """Whether all requests of one caller, each made twice, are answered as recorded."""
    given = [*for_the_loop(), *for_the_loop()]
    assert len(given) > 50
    async with wire(service.port) as connection:
        replies = [await connection.ask(each.path, each.body, each.headers) for each in given]
    return all(each.fits(reply) for each, reply in zip(given, replies, strict=True))


def test_a_caller_is_served_while_every_worker_is_suspended() -> None:
    with alone(one_after_the_other) as service:
        with suspended(service):
            given = for_a_worker()
            reply = asyncio.run(ask(service.port, given.path, given.body, given.headers))
            assert given.fits(reply)
            assert metric(service, RESTARTS) > 0
        assert asyncio.run(Crowd(service.port, recorded()).ask(24, 240)).only_right()
        assert asyncio.run(one_after_the_other(service))


def test_many_who_come_together_have_workers() -> None:
    given = for_the_loop()[0]

    async def together(port: int) -> None:
        """Many at a time, until one of them has needed a worker."""
        async with contextlib.AsyncExitStack() as stack:
            crowd = [await stack.enter_async_context(wire(port)) for _ in range(4 * FEW)]
            while await metric_at(port, RESTARTS) == 0:
                asked = [each.ask(given.path, given.body, given.headers) for each in crowd]
                assert all(map(given.fits, await asyncio.gather(*asked)))

    with running("--workers", "1") as service, suspended(service):
        asyncio.run(asyncio.wait_for(together(service.port), 60.0))


@pytest.mark.parametrize("by", ["address", "key"])
def test_all_are_answered_where_a_crowd_begins_by_turns(by: str) -> None:
    """Also where some of the crowd's requests have the lone one's key, and others one that is wrong."""

    def keyed(given: Recorded, key: str) -> Recorded:
        return replace(given, headers=given.headers | {"Authorization": f"Bearer {key}"})

    requests, lone_requests = recorded(), for_the_loop()
    address, settings = "127.0.0.2", {}
    if by == "key":
        requests = [keyed(each, "of-many") for each in requests]
        lone_requests = [keyed(each, "of-one") for each in lone_requests]
        address, settings = "127.0.0.1", {"api_keys": "of-many,of-one"}
    mixed = [*requests[1:], *lone_requests[:1]] if by == "key" else requests

    async def beside(port: int) -> None:
        crowd = asyncio.create_task(Crowd(port, mixed).ask(32, 1600))
        given = lone_requests
        async with wire(port, address) as lone:
            while not crowd.done():
                for each in given:
                    assert each.fits(await lone.ask(each.path, each.body, each.headers))
                if by == "key":
                    wrong = keyed(given[0], "of-nobody")
                    assert (await lone.ask(wrong.path, wrong.body, wrong.headers)).status == 403
        assert (await crowd).only_right()

    with running("--workers", "2", **settings) as service:
        asyncio.run(asyncio.wait_for(beside(service.port), 120.0))


def test_few_have_none() -> None:
    given = for_the_loop()[0]

    async def together(service: Service) -> bool:
        async with contextlib.AsyncExitStack() as stack:
            callers = [await stack.enter_async_context(wire(service.port)) for _ in range(FEW)]
            replies: list[Reply] = []
            for _ in range(20):
                asked = [each.ask(given.path, given.body, given.headers) for each in callers]
                replies += await asyncio.gather(*asked)
        return all(map(given.fits, replies))

    with alone(together):
        pass


def test_who_leaves_a_body_unfinished_or_an_answer_untaken_keeps_nobody_out() -> None:
    given = for_the_loop()[0]
    whole = request(given.path, given.body, given.headers)

    async def beside(service: Service) -> bool:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(FEW + 1):
                unfinished = await stack.enter_async_context(wire(service.port))
                await unfinished.say(whole[:-1])
                deaf = await stack.enter_async_context(wire(service.port, receive_buffer=1 << 10))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        while True:
                            await deaf.say(64 * whole)
                stack.callback(deaf.abort)
            return await one_after_the_other(service)

    with alone(beside):
        pass


def test_mistakes_are_told_in_the_same_words_and_counted_alike() -> None:
    def wrong(size: int) -> bytes:
        indices = np.full((1, 1, size), 2 * size, np.int64)
        return packed(
            {"output_size": [2 * size]}, x=np.ones((1, 1, size), np.float32), indices=indices
        )

    def told(reply: Reply) -> tuple[int, str, str]:
        error = reply.problem["errors"][0]
        return reply.status, reply.slug, f"{error['loc']} {error['msg']}"

    async def one(service: Service, size: int) -> Reply:
        return await ask(service.port, "/v1/max_unpool/forward", wrong(size))

    here: list[tuple[int, str, str]] = []

    async def small(service: Service) -> bool:
        here.append(told(await one(service, 8)))
        return here[-1] == here[0]

    with alone(small) as service:
        there = told(asyncio.run(one(service, 1 << 15)))
        assert here[0] == there
        assert there[:2] == (422, "invalid-indices")
        assert metric(service, "convoke_queue_requests") == 0
        series = 'convoke_rejects_total{reason="invalid-indices"}'
        assert metric(service, series) == 2
