"""Large JSON on its way to the scribe and back.

1. Callers take turns, so that who sends much waits for itself.
2. What waits is bounded in bytes. Only bodies are refused; an answer that is to be written has its permit.
3. A letter that nobody waits for any more is dropped, and if it is being worked on, the scribe is ended
   unless it is done at once.
4. A scribe that dies loses nothing: its letter is given to the next, unless one after another died of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from numpy.typing import NDArray

from app import blame
from app.admission import Admission, QueueLimits
from app.errors import (
    DeadlineExceeded,
    QueueFull,
    ShuttingDown,
    WorkersUnavailable,
)
from app.scribe.letters import Letter, Reading, Writing, reading_room, writing_room
from app.scribe.orders import Order, Orders
from app.scribe.process import Scribe, ScribeOptions, Written
from app.visitor import NOBODY, Visitor
from app.wire import Body, DecodeLimits, Exchange, PlanRequest, Request
from app.workers.channel import Message
from app.workers.pool import Pool
from app.workers.task import (
    CRASHED,
    STOP_GRACE_S,
    STUCK,
    SUSPENDED,
    WATCH_S,
    WorkerDied,
    lost,
)

IDLE_S = 30.0
"""How long the scribe is kept without work; a new one takes a third of a second to start."""

RETRY_S = 5.0
"""When to try again after no scribe could be started."""


@dataclass(frozen=True, slots=True)
class DeskLimits:
    """The settings of a desk.

    Attributes:
        decode: for the bodies that are read.
        body_bytes: of the largest body. waiting_bytes: of all bodies that wait; one always may.
        work_s: seconds after which the scribe counts as stuck.
    """

    decode: DecodeLimits
    body_bytes: int
    waiting_bytes: int
    work_s: float


class Desk:
    """Takes letters and gives back what became of them.

    Args:
        on_death: told why a scribe died.
        make: makes a scribe; by default what the limits need.
    """

    def __init__(
        self,
        limits: DeskLimits,
        on_death: Callable[[str], None],
        make: Callable[[], Scribe] | None = None,
    ) -> None:
        self._limits = limits
        self._waiting = Orders()
        self._arrived = asyncio.Event()  # something was queued, or the scribe called
        self._called = False  # the scribe is to be started before there is a letter for it
        self._scribe: Scribe | None = None
        places = QueueLimits(limits.waiting_bytes, limits.waiting_bytes)
        self._admission = Admission(places, "JSON bodies")
        self._pool = Pool(1, make or scribe_maker(limits), self._serve, on_death, self._give_up)
        self._closed = False

    async def start(self) -> None:
        """Be ready to start a scribe."""
        await self._pool.start()

    def ready(self, nbytes: int) -> bool:
        """Whether a body would be taken, by a scribe that is up; where none is, one is started."""
        if self._scribe is None or not self._scribe.up:
            self._called = True
            self._arrived.set()
            return False
        return self.refusal(nbytes) is None

    def refusal(self, nbytes: int, visitor: Visitor = NOBODY) -> QueueFull | None:
        """How a body would be refused for want of room; None where it would not.

        Args:
            nbytes: that it has.
        """
        return self._admission.refusal(nbytes, time.monotonic(), visitor)

    def left(self, visitor: Visitor) -> None:
        """A connection has been closed, over which nobody will come back."""
        self._admission.left(visitor)

    async def close(self) -> None:
        """End the scribe; what waits is refused."""
        self._closed = True
        await self._pool.close()
        self._waiting.fail_all(ShuttingDown.unfinished)

    async def read(
        self,
        body: Body,
        action: str,
        caller: str,
        deadline: float | None,
        visitor: Visitor = NOBODY,
    ) -> Request | PlanRequest:
        """Read a body; cancelling this withdraws it.

        Raises:
            ServiceError, engine.EngineError: what `decode` and `decode_plan` raise.
            QueueFull, ShuttingDown, WorkersUnavailable: it was not accepted.
            DeadlineExceeded, WorkerCrashed, ComputeFailed, MemoryError: what became of it.
        """
        size = len(body)
        self._admission.acquire(size, time.monotonic(), visitor)
        try:
            letter = Reading(body, action == "plan", self._limits.decode)
            return cast(Request | PlanRequest, await self._done(letter, caller, deadline))
        finally:
            self._admission.release(size, time.monotonic())

    async def write(
        self,
        tensors: Mapping[str, NDArray[Any]],
        info: dict[str, Any],
        exchange: Exchange,
        caller: str,
        deadline: float | None,
    ) -> memoryview:
        """Write an answer, as `encode` does; cancelling this withdraws it.

        Raises:
            ShuttingDown, WorkersUnavailable, DeadlineExceeded, WorkerCrashed, ComputeFailed, MemoryError.
        """
        letter = Writing(dict(tensors), info, exchange)
        return cast(memoryview, await self._done(letter, caller, deadline))

    async def _done(self, letter: Letter, caller: str, deadline: float | None) -> Written:
        if self._closed:
            raise ShuttingDown
        if self._pool.hopeless:
            raise WorkersUnavailable(retry_after=RETRY_S)
        order = Order(letter, caller, asyncio.get_running_loop().create_future())
        self._waiting.put(order)
        self._arrived.set()
        try:
            async with asyncio.timeout_at(deadline):
                return await order.future
        except TimeoutError:
            raise DeadlineExceeded from None
        finally:
            self._waiting.withdraw(order)
            del order  # its error holds this frame, and would hold the letter in a circle

    async def _serve(self, scribe: Scribe, achieved: Callable[[], None]) -> None:
        """Give a scribe one letter after the other, until it dies; raises WorkerDied."""
        self._scribe = scribe
        while True:
            order = await self._next(scribe)
            try:
                await self._work_on(order, scribe)
            except asyncio.CancelledError:
                order.fail(ShuttingDown.unfinished())
                raise
            del order  # nothing large is held while there is nothing to do
            achieved()

    async def _work_on(self, order: Order, scribe: Scribe) -> None:
        """Have a scribe do an order, and tell what came of it; what it died of is queued again, or refused.

        Raises:
            WorkerDied, OSError: the scribe is to be replaced.
        """
        try:
            reply = await scribe.begin(order.letter)
        except (WorkerDied, OSError):
            self._waiting.again(order)  # which had no part in that
            raise
        except Exception as error:
            # This process has no memory or no thread left; how far the scribe was started is not known.
            order.fail(error)
            raise WorkerDied(CRASHED) from error
        try:
            await self._watch(order, scribe, reply)
            written = await scribe.finish(order.letter, await reply)
        except WorkerDied as death:
            blame.bereaved(order, death.reason, self._limits.work_s)
            self._waiting.again(order)
            raise
        except Exception as error:  # noqa: BLE001 - it is the answer
            blame.failed(order, error)
            self._waiting.again(order)
            return
        if not order.future.done():
            order.future.set_result(written)

    async def _watch(self, order: Order, scribe: Scribe, reply: asyncio.Future[Message]) -> None:
        """Wait for a reply, or until nobody does; end a scribe that cannot or should not go on.

        The reply of one that is ended is its death.
        """
        looked = time.monotonic()
        stuck = looked + self._limits.work_s
        while not reply.done():
            if order.future.done():
                await asyncio.wait([reply], timeout=STOP_GRACE_S)
                if not reply.done():
                    scribe.kill("cancelled")
                return
            now = time.monotonic()
            stuck += lost(now - looked)
            looked = now
            if now > stuck:
                scribe.kill(STUCK)
                return
            if scribe.suspended():
                scribe.kill(SUSPENDED)
                return
            waits: list[asyncio.Future[Any]] = [reply, order.future]
            await asyncio.wait(waits, timeout=WATCH_S, return_when=asyncio.FIRST_COMPLETED)

    async def _next(self, scribe: Scribe) -> Order:
        """The next order; a scribe that waits for long is sent away, and comes with the next order."""
        while not self._waiting:
            if self._called:
                self._called = False
                await scribe.come()
                continue
            self._arrived.clear()
            try:
                async with asyncio.timeout(IDLE_S if scribe.there else None):
                    await self._arrived.wait()
            except TimeoutError:
                await scribe.leave()
        return self._waiting.take()

    def _give_up(self) -> None:
        """No scribe can be had, nor soon."""
        self._waiting.fail_all(lambda: WorkersUnavailable(retry_after=RETRY_S))


def letter_room(limits: DeskLimits) -> int:
    """Most shared memory that a letter may need."""
    decode = limits.decode
    return max(reading_room(limits.body_bytes), writing_room(decode.max_elements, decode.max_rank))


def scribe_maker(limits: DeskLimits, *, urgent: bool = False) -> Callable[[], Scribe]:
    """What makes scribes with room for every letter that the limits let in; see `ScribeOptions`."""
    options = ScribeOptions(arena_bytes=letter_room(limits), urgent=urgent)
    return lambda: Scribe(options)
