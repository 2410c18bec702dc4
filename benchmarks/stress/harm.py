"""What can be done to a running service, by name: to its processes, and as its clients."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

from benchmarks.stress.client import request, wire
from benchmarks.stress.service import Service, kill, starve
from benchmarks.stress.traffic import large, recorded

Harm = Callable[[Service, random.Random], Awaitable[None]]

CLIENTS = 10
"""Clients of one kind that come at once."""


def _to_process(action: Callable[[int], None]) -> Harm:
    async def harm(service: Service, draw: random.Random) -> None:
        if processes := service.children:
            action(draw.choice(processes))

    return harm


async def _leave(service: Service, draw: random.Random) -> None:
    """Clients that send a part of a request, or all of it, and go."""
    given = draw.choice(recorded())
    whole = request(given.path, given.body, given.headers)

    async def one(size: int, reset: bool) -> None:
        with suppress(ConnectionError):  # it may be answered, and hung up on, before it is through
            async with wire(service.port) as connection:
                await connection.say(whole[:size])
                if reset:
                    connection.abort()

    await asyncio.gather(
        *(one(draw.randrange(len(whole) + 1), draw.random() < 0.5) for _ in range(CLIENTS))
    )


async def _abandon(service: Service, draw: random.Random) -> None:
    """Clients that ask for much and do not wait for it."""
    body = request("/v1/conv/forward", large(draw.choice([0.5, 2.0])))
    with suppress(ConnectionError):
        async with wire(service.port) as connection:
            await connection.say(body)
            await asyncio.sleep(draw.uniform(0.0, 0.1))


async def _deafen(service: Service, draw: random.Random) -> None:
    """Clients that ask on and on and never listen."""
    given = draw.choice(recorded())
    with suppress(ConnectionError, TimeoutError):
        async with wire(service.port, receive_buffer=4096) as connection, asyncio.timeout(0.3):
            while True:
                await connection.say(request(given.path, given.body, given.headers) * 10)


async def _nonsense(service: Service, draw: random.Random) -> None:
    """Clients that speak no HTTP."""
    with suppress(ConnectionError):
        async with wire(service.port) as connection:
            await connection.say(draw.randbytes(2000))
            await asyncio.wait_for(connection.ended(), 5.0)


HARMS: dict[str, Harm] = {
    "kill": _to_process(kill),
    "suspend": _to_process(lambda pid: kill(pid, signal.SIGSTOP)),
    "starve": _to_process(starve),
    "leave": _leave,
    "abandon": _abandon,
    "deafen": _deafen,
    "nonsense": _nonsense,
}
