"""Equal requests get equal bytes: alone, in a crowd, from any number of workers, dying or not."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.stress.client import wire
from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.service import Service, kill, running
from benchmarks.stress.traffic import large, recorded

CLIENTS = 48


async def alone(service: Service) -> int:
    """Ask for everything once, one after the other; how many answers were as recorded."""
    async with wire(service.port) as connection:
        replies = [
            await connection.ask(given.path, given.body, given.headers) for given in recorded()
        ]
    return sum(given.fits(reply) for given, reply in zip(recorded(), replies, strict=True))


async def crowded(service: Service, kill_every: float | None) -> Account:
    """Ask for everything again and again from many sides, with large work in between."""

    async def disturb() -> None:
        async with wire(service.port) as connection:
            body = large(0.5)
            while True:
                await connection.ask("/v1/conv/forward", body)

    async def harm() -> None:
        while kill_every:
            await asyncio.sleep(kill_every)
            for pid in service.workers[:1]:
                kill(pid)

    others = [asyncio.create_task(disturb()), asyncio.create_task(harm())]
    try:
        return await Crowd(service.port, recorded()).ask(CLIENTS, 480)
    finally:
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@pytest.mark.parametrize(
    ("workers", "kill_every"),
    [(0, None), (1, None), (2, None), (4, None), (2, 0.4)],
    ids=["in the server", "1 worker", "2 workers", "4 workers", "2 workers dying"],
)
def test_equal_requests_get_equal_bytes_from(workers: int, kill_every: float | None) -> None:
    with running("--workers", str(workers)) as service:
        assert asyncio.run(alone(service)) == len(recorded())
        account = asyncio.run(crowded(service, kill_every))
        assert account.only_right(), account


def test_batching_changes_no_bit() -> None:
    with running("--workers", "2", batching="false") as service:
        assert asyncio.run(Crowd(service.port, recorded()).ask(CLIENTS, 200)).only_right()
