"""Equal requests get equal bytes: alone, in a crowd, from any number of workers, dying or not."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from benchmarks.stress.client import Hung, wire
from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.service import Service, kill, running
from benchmarks.stress.traffic import large, recorded
from tests.faults.metrics import metric

CLIENTS = 48


async def alone(service: Service) -> int:
    """Ask for everything once, one after the other; how many answers were as recorded."""
    async with wire(service.port) as connection:
        replies = [
            await connection.ask(given.path, given.body, given.headers) for given in recorded()
        ]
    return sum(given.fits(reply) for given, reply in zip(recorded(), replies, strict=True))


async def crowded(service: Service, killing: int | None) -> Account:
    """Ask for everything again and again from many sides, with large work in between.

    Args:
        killing: after so many answers a worker is killed. By the clock it would be killed before it is up,
            where the machine is slow.
    """
    crowd, answers = Crowd(service.port, recorded()), 0

    async def disturb() -> None:
        body = large(0.5)
        while True:
            with contextlib.suppress(Hung):
                async with wire(service.port) as connection:
                    while True:
                        await connection.ask("/v1/conv/forward", body)

    async def harm() -> None:
        nonlocal answers
        while killing:
            await asyncio.sleep(0.005)
            if crowd.account.asked >= answers + killing:
                answers = crowd.account.asked
                for pid in service.workers[:1]:
                    kill(pid)

    others = [asyncio.create_task(disturb()), asyncio.create_task(harm())]
    try:
        return await crowd.ask(CLIENTS, 480)
    finally:
        for task in others:
            task.cancel()
        ends = await asyncio.gather(*others, return_exceptions=True)
        assert not any(isinstance(end, Exception) for end in ends), ends


@pytest.mark.parametrize(
    ("workers", "killing"),
    [(0, None), (1, None), (2, None), (4, None), (2, 60)],
    ids=["in the server", "1 worker", "2 workers", "4 workers", "2 workers dying"],
)
def test_equal_requests_get_equal_bytes_from(workers: int, killing: int | None) -> None:
    with running("--workers", str(workers)) as service:
        assert asyncio.run(alone(service)) == len(recorded())
        account = asyncio.run(crowded(service, killing))
        assert account.only_right(), account
        killed = metric(service, 'convoke_worker_restarts_total{reason="killed"}')
        assert killed > 2 if killing else not killed


def test_batching_changes_no_bit() -> None:
    with running("--workers", "2", batching="false") as service:
        assert asyncio.run(Crowd(service.port, recorded()).ask(CLIENTS, 200)).only_right()
