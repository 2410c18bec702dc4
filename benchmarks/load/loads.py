"""Loads on one event loop: closed ones, of fixed concurrency, and open ones, of Poisson arrivals.

An open load's latency counts from the time at which a request was due, not from when a connection
was free for it, so that a slow server cannot hide the waiting that it causes.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from time import perf_counter

from benchmarks.load.checks import Checker, WrongAnswer
from benchmarks.load.connection import Connection, Reply
from benchmarks.load.streams import Request, stream

HOST = "127.0.0.1"

PATIENCE_S = 60.0
"""How long answers are waited for after the end of a load."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One load.

    Attributes:
        port: of the server.
        stream: name of what is sent.
        connections: how many; for an open load, the most.
        seconds: how long requests are sent, from the start on.
        rate: requests/s of an open load; 0 for a closed one.
        obey: whether a request that is refused is sent again after its `Retry-After`, once, and
            under the same `X-Request-Id`.
        source: the local address, by which servers tell callers apart.
        delay: seconds before the load begins.
    """

    stream: str
    connections: int
    seconds: float
    port: int = 0
    rate: float = 0.0
    seed: int = 0
    obey: bool = False
    echo: bool = False
    source: str = HOST
    delay: float = 0.0


@dataclass
class Sent:
    """One request that is under way or answered; times in seconds from the start of the round.

    Attributes:
        due: when it was to be sent. sent: when it was, which is later where no connection was free.
        first: status of the first attempt, where this is the second; else 0.
        name: its `X-Request-Id`, the same in both attempts; empty for none.
    """

    request: Request
    due: float
    sent: float = 0.0
    first: int = 0
    name: str = ""


@dataclass(frozen=True)
class Answered:
    """An answer: its request's times, when it came, its status, and the bytes both ways."""

    due: float
    sent: float
    end: float
    status: int
    first: int
    nbytes: int


class Stop(Exception):
    """A load cannot go on: a wrong answer, or a connection lost with a request under way."""


class Load(ABC):
    """What both kinds have: connections, the stream, and what was answered."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.checker = Checker(spec.echo)
        self.answers: list[Answered] = []
        self.refused_after: list[int] = []
        self.finished = asyncio.Event()
        self._start = 0.0
        self._requests = itertools.cycle(stream(spec.stream))
        self._on: dict[Connection, Sent] = {}
        self._connections: list[Connection] = []
        self._opening: set[asyncio.Task[Connection]] = set()
        self._ended = False

    def begin(self, start: float) -> None:
        """Set the round's clock, on that of `perf_counter`."""
        self._start = start

    def now(self) -> float:
        """Seconds since the start of the round."""
        return perf_counter() - self._start

    async def prepare(self) -> None:
        """Open all connections: opening one under load would hold arrivals up."""
        for _ in range(self.spec.connections):
            await self.connect()

    async def connect(self) -> Connection:
        """Open one more connection."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self._replied, self._lost),
            HOST,
            self.spec.port,
            local_addr=None if self.spec.source == HOST else (self.spec.source, 0),
        )
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Close all connections."""
        for opening in self._opening:
            opening.cancel()
        for connection in self._connections:
            connection.close()

    def next(self) -> Request:
        """The next request of the stream."""
        return next(self._requests)

    def send(self, connection: Connection, sent: Sent) -> None:
        """Send a request on an idle connection."""
        self._on[connection] = sent
        sent.sent = self.now()
        name = f"X-Request-Id: {sent.name}\r\n" if sent.name else ""
        connection.send(sent.request.head + name.encode() + b"\r\n", sent.request.body)

    def end(self) -> None:
        """Send nothing more."""
        self._ended = True
        if not self._on:
            self.finished.set()

    @abstractmethod
    def free(self, connection: Connection) -> None:
        """A connection has its answer."""

    def refused(self, sent: Sent, reply: Reply) -> None:  # noqa: B027 - most loads do nothing then
        """A first attempt got a 503."""

    def _replied(self, connection: Connection, reply: Reply) -> None:
        sent = self._on.pop(connection)
        if reply.status == 200:
            self.checker.check(sent.request, reply)
        elif reply.status == 503:
            self.refused_after.append(reply.retry_after or 0)
            self.refused(sent, reply)
        else:
            raise WrongAnswer(f"status {reply.status}: {bytes(reply.body)!r:.300}")
        nbytes = len(reply.body) + len(sent.request.body)
        times = sent.due, sent.sent, self.now()
        answered = Answered(*times, reply.status, sent.first, nbytes)
        self.answers.append(answered)
        self.free(connection)
        if self._ended and not self._on:
            self.finished.set()

    def reopen(self, connection: Connection) -> None:
        """Open a connection in place of one that is closed, or not to be used any more."""
        connection.close()
        self._connections.remove(connection)
        opening = asyncio.get_running_loop().create_task(self.connect())
        self._opening.add(opening)
        opening.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[Connection]) -> None:
        self._opening.discard(opening)
        if not opening.cancelled():
            self.free(opening.result())

    def _lost(self, _: Connection, outstanding: bool) -> None:
        if outstanding:
            raise Stop(f"{self.spec.stream}: the server hung up with a request under way")


class Closed(Load):
    """As many requests under way as there are connections."""

    async def run(self) -> None:
        """Run to the last answer."""
        await asyncio.sleep(self.spec.delay - self.now())
        for connection in list(self._connections):
            self.free(connection)
        await asyncio.sleep(self.spec.delay + self.spec.seconds - self.now())
        self.end()
        await asyncio.wait_for(self.finished.wait(), PATIENCE_S)
        self.close()

    def free(self, connection: Connection) -> None:
        """Send the next request at once."""
        if self._ended:
            return
        if connection.lost:
            self.reopen(connection)
        else:
            self.send(connection, Sent(self.next(), self.now()))


class Open(Load):
    """Poisson arrivals, whatever the answers do."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._idle: list[Connection] = []
        self._due: deque[Sent] = deque()
        self._later = 0
        self._count = 0

    async def run(self) -> None:
        """Run to the last answer, those to second attempts included."""
        spec, loop = self.spec, asyncio.get_running_loop()
        arrivals = random.Random(spec.seed)
        self._idle = list(self._connections)
        await asyncio.sleep(spec.delay - self.now())
        due = spec.delay + arrivals.expovariate(spec.rate)
        while due < spec.delay + spec.seconds:
            if due > self.now():
                await asyncio.sleep(due - self.now())
            self._count += 1
            name = f"{spec.seed}-{self._count}" if spec.obey else ""
            self._arrive(Sent(self.next(), due, name=name))
            due += arrivals.expovariate(spec.rate)
        give_up = loop.time() + PATIENCE_S
        while left := len(self._due) + len(self._on) + self._later:
            if loop.time() > give_up:
                raise Stop(
                    f"{spec.stream}: {left} requests without an answer {PATIENCE_S:g} s after the end"
                )
            await asyncio.sleep(0.02)
        self.close()

    def free(self, connection: Connection) -> None:
        """Send what is due, or keep the connection."""
        if connection.lost:
            self.reopen(connection)
        elif self._due:
            self.send(connection, self._due.popleft())
        else:
            self._idle.append(connection)

    def refused(self, sent: Sent, reply: Reply) -> None:
        """Obey the `Retry-After`, once."""
        if self.spec.obey and not sent.first:
            self._later += 1
            wait = reply.retry_after or 0
            due = self.now() + wait
            again = Sent(sent.request, due, first=reply.status, name=sent.name)
            asyncio.get_running_loop().call_later(wait, self._again, again)

    def _again(self, sent: Sent) -> None:
        self._later -= 1
        self._arrive(sent)

    def _arrive(self, sent: Sent) -> None:
        while self._idle:
            # A refused body goes out to its end, and what follows it on its connection only then.
            whole = (at for at in reversed(range(len(self._idle))) if not self._idle[at].sending)
            connection = self._idle.pop(next(whole, 0))
            if not connection.lost and not connection.stale:
                self.send(connection, sent)
                return
            self.reopen(connection)
            if connection.stale:
                break  # those that were used before it are stale, too
        self._due.append(sent)


def make(spec: Spec) -> Closed | Open:
    """The load that a spec describes."""
    return Open(spec) if spec.rate else Closed(spec)
