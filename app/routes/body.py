"""Bodies: read whole, within their limits, copied no more than once, and counted while held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic

from app.admission import RETRY_MAX_S, RETRY_MIN_S
from app.draining import DrainRate
from app.edge import REST, ClientGone
from app.errors import BodyTooLarge, DeadlineExceeded, QueueFull, RequestTimeout
from app.incoming import Wanted, fresh
from app.routes.coming import LOOK_S, PROGRESS_BYTES, Coming, Unfinished
from app.routes.head import Asked
from app.routes.untaken import Untaken
from app.wire import Body
from app.workers.berths import Berths

IN_PLACE_BYTES = 256 << 10
"""A body of so many that is not there at once is received in place, where the server can do that."""

Aligned = Callable[[int], int]
Count = Callable[[int], None]


class Intake:
    """Memory for the bodies of all requests under way, and of their answers.

    Args:
        capacity: most bytes that may be held for new bodies to be let in.
        berths: where large ones are received; None where they are not.

    Attributes:
        held: bytes held now.
        most: the most since somebody set it to less.
    """

    def __init__(self, capacity: int, berths: Berths | None = None) -> None:
        self._capacity = capacity
        self._berths = berths
        self._untaken = Untaken(capacity)
        self._unfinished = Unfinished(capacity)
        self._rate = DrainRate(each=0)  # of bytes alone
        self.held = self.most = 0

    async def read(
        self, asked: Asked, limit: int, setting: str, aligned: Aligned | None = None
    ) -> Body:
        """Read the body; once it is whole, its bytes stay counted in `held` until they are released.

        Args:
            limit: most bytes.
            setting: the name of that limit, for the error.
            aligned: where a tensor's data begins, in a body of so many bytes, that a worker is to read
                in place; None where it is to be received elsewhere.

        Raises:
            BodyTooLarge: before anything is read where the length is announced, else as soon as
                it is exceeded.
            QueueFull: the bodies of all requests together are too many, or the caller's answers.
            RequestTimeout: hardly anything came of it, and another had no room.
            DeadlineExceeded: the deadline passed before the body was whole.
            ClientGone: the client left.
        """
        announced = asked.record.headers.get(b"content-length")
        if announced is not None:
            if int(announced) > limit:
                raise _too_large(limit, setting, int(announced))
            self._check(asked.caller, int(announced), 0)
        if asked.deadline is None:  # a timeout costs even where it does nothing
            return await self._read(asked, limit, setting, aligned)
        try:
            async with asyncio.timeout_at(asked.deadline):
                return await self._read(asked, limit, setting, aligned)
        except TimeoutError:
            raise DeadlineExceeded("The deadline passed before the body was received.") from None

    def promise(self, caller: str, size: int) -> int:
        """Count an answer of about this size from when it is asked for until it is there.

        Returns:
            What is counted, for `made`: small answers are not.

        Raises:
            QueueFull: the caller has too many answers to take already.
        """
        if size < IN_PLACE_BYTES:
            return 0
        self._check(caller, size, size)
        self._untaken.promise(caller, size)
        return size

    def made(self, caller: str, promised: int) -> None:
        """The answer is there, or given up."""
        if promised:
            self._untaken.promise(caller, -promised)

    def _check(self, caller: str, nbytes: int, answer: int) -> None:
        if nbytes >= IN_PLACE_BYTES and self._untaken.full(caller, answer):
            raise self._refusal("Answers that this caller has yet to take are too many.")

    def hold(self, size: int) -> None:
        """Count bytes."""
        if not self.held:
            self._let_time_pass()
        self.held += size
        self.most = max(self.most, self.held)

    def release(self, size: int) -> None:
        """Give back what a body held."""
        if size >= IN_PLACE_BYTES:
            self._let_time_pass()
            self._rate.drained(size)
        self.held -= size

    def send(self, caller: str, size: int) -> None:
        """Count an answer that is sent. It is there: only new requests can be refused for it."""
        self.hold(size)
        if size >= IN_PLACE_BYTES:
            self._untaken.send(caller, size)

    def sent(self, caller: str, size: int) -> None:
        """The answer was taken, or given up."""
        if size >= IN_PLACE_BYTES:
            self._untaken.send(caller, -size)
        self.release(size)

    def _let_time_pass(self) -> None:
        """To be called before `held` becomes more than 0, or 0: time without is left out of the rate."""
        self._rate.advance(monotonic(), busy=self.held > 0)

    def _refusal(self, detail: str) -> QueueFull:
        """A refusal that says when half of what is held will have been given back."""
        self._let_time_pass()
        wait = self._rate.time_for(0, self.held / 2)
        return QueueFull(detail, retry_after=min(max(wait, RETRY_MIN_S), RETRY_MAX_S))

    def _count(self, body: Coming, size: int) -> None:
        """Count bytes that have come of a body, if there is room for them, or some is made.

        Raises:
            QueueFull: there is none; the body holds nothing any more.
        """
        body.held += size
        self.hold(size)
        while self.held - self._untaken.beyond > self._capacity:
            other = self._unfinished.yielding(body)
            full = self._refusal("Too many bodies are held already.")
            # At once, or else all whose bytes come in the same turn would be refused with this one.
            self._give_up(other or body)
            if other is None:
                raise full
            late = other.stalled > 0
            other.give_way(RequestTimeout("body", LOOK_S, PROGRESS_BYTES) if late else full)

    def _give_up(self, body: Coming) -> None:
        """Nothing of a body is held any more."""
        self.release(body.held)
        body.held = 0

    def _place(self, asked: Asked, body: Coming, size: int, aligned: Aligned | None) -> memoryview:
        """Memory for a body, which is received from now on, if there is still room for it."""
        body.waits = False
        if asked.reserved is not None:
            asked.reserved.begin()
        berth = None
        if self._berths is not None and aligned is not None:
            berth = self._berths.take(size, aligned(size))
        return fresh(size) if berth is None else berth

    async def _read(self, asked: Asked, limit: int, setting: str, aligned: Aligned | None) -> Body:
        record, body = asked.record, Coming(asked.caller)

        def count(size: int) -> None:
            record.bytes_in += size
            body.check()  # what comes in the turn in which it gave way
            if record.bytes_in > limit:
                raise _too_large(limit, setting, record.bytes_in)
            self._count(body, size)

        try:
            first = await _piece(asked, count)
            return await self._rest(asked, body, first, count, aligned) if record.unread else first
        except BaseException:
            self._give_up(body)
            raise

    async def _rest(
        self, asked: Asked, body: Coming, first: bytes, count: Count, aligned: Aligned | None
    ) -> Body:
        """The whole of a body of which more is to come; raises what it gave way with, if it had to."""
        self._unfinished.enter(body)
        try:
            async with asyncio.timeout(None) as wait:
                body.begin(partial(wait.reschedule, 0.0))
                whole = await self._received(asked, body, first, count, aligned)
        except TimeoutError:
            body.check()
            raise
        finally:
            self._unfinished.leave(body)
        body.check()  # the last of it came in the turn in which it gave way
        return whole

    async def _received(
        self, asked: Asked, body: Coming, first: bytes, count: Count, aligned: Aligned | None
    ) -> Body:
        record, scope = asked.record, asked.scope
        size = record.body_length
        if size >= IN_PLACE_BYTES and REST in scope:
            if asked.reserved is not None:
                asked.reserved.pause()  # it may have to wait for its turn
            body.waits = True
            place = partial(self._place, asked, body, size, aligned)
            whole: memoryview = await scope[REST](Wanted(first, place, count, asked.caller))
            record.unread = False
            return whole
        pieces = bytearray(first)
        while record.unread:
            pieces += await _piece(asked, count)
        return pieces


async def _piece(asked: Asked, count: Count) -> bytes:
    """The next piece of a body, counted; the request's record tells whether more is to come."""
    message = await asked.receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    piece: bytes = message.get("body", b"")
    asked.record.unread = message.get("more_body", False)
    count(len(piece))
    return piece


def _too_large(limit: int, setting: str, got: int) -> BodyTooLarge:
    return BodyTooLarge.at((), f"the body exceeds {setting}", f"at most {limit} bytes", got)
