"""Many clients at once, each with one request at a time, every answer judged."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.stress.client import Hung, Reply, wire
from benchmarks.stress.traffic import Recorded

PATIENCE_S = 30.0
"""No answer takes so long; one that does counts as missing."""


@dataclass
class Account:
    """What came of a crowd's requests.

    Attributes:
        right: answered with the expected tensors, bit by bit.
        refused: answered with a problem, by status and kind.
        wrong: answered with other tensors: by name of the request.
        missing: not answered: by what happened.
        slowest: seconds that the slowest answer took.
    """

    right: int = 0
    refused: Counter[tuple[int, str]] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0

    @property
    def asked(self) -> int:
        """All requests."""
        refused, wrong, missing = (c.total() for c in (self.refused, self.wrong, self.missing))
        return self.right + refused + wrong + missing

    def judge(self, given: Recorded, reply: Reply, seconds: float) -> None:
        """Enter one answer."""
        self.slowest = max(self.slowest, seconds)
        if reply.status != 200:
            self.refused[reply.status, reply.slug] += 1
        elif given.fits(reply):
            self.right += 1
        else:
            self.wrong[given.name] += 1

    def only_right(self) -> bool:
        """Whether every request was answered as it must be."""
        return self.right == self.asked > 0


class Crowd:
    """Clients that go through the recorded requests.

    Args:
        given: is gone through in turn, each client starting elsewhere.
    """

    def __init__(self, port: int, given: Sequence[Recorded]) -> None:
        self.account = Account()
        self._port = port
        self._given = given

    async def ask(self, clients: int, requests: int) -> Account:
        """Send so many requests from so many clients."""
        left = iter(range(requests))
        return await self.ask_while(clients, lambda: next(left, None) is not None)

    async def go_on(self, clients: int, seconds: float) -> Account:
        """Send requests for so long."""
        end = time.monotonic() + seconds
        return await self.ask_while(clients, lambda: time.monotonic() < end)

    async def ask_while(self, clients: int, more: Callable[[], bool]) -> Account:
        """Send requests for as long as more are wanted."""
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                start = number * len(self._given) // clients
                turn = itertools.islice(itertools.cycle(self._given), start, None)
                group.create_task(self._client(turn, more))
        return self.account

    async def _client(self, turn: Iterator[Recorded], more: Callable[[], bool]) -> None:
        going = more()
        while going:
            try:
                async with wire(self._port) as connection:
                    closing = False
                    while going and not closing:
                        given = next(turn)
                        started = time.monotonic()
                        async with asyncio.timeout(PATIENCE_S):
                            reply = await connection.ask(given.path, given.body, given.headers)
                        self.account.judge(given, reply, time.monotonic() - started)
                        closing = reply.headers.get("connection") == "close"
                        going = more()
            except (Hung, TimeoutError, ConnectionError) as error:
                self.account.missing[type(error).__name__] += 1
                going = more()
