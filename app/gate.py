"""Refusals for want of room, given before a request is so much as parsed.

Under overload most of the work is refusing, and what that costs is lost to those who are let in. So
a head that was refused once for want of room, and was found right in all else, is remembered. While
there is no room, one that has the same bytes, but for its `X-Request-Id`, gets the same answer at
once: without parser, task or record, and without a line of its own in the log, where refusals are
summed up. Everything else goes the long way.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from time import monotonic
from typing import NamedTuple

from app import logs
from app.cors import NO_ORIGINS, Origins
from app.dispatcher import Dispatcher
from app.edge import CLOSE, new_request_id
from app.errors import QueueFull, ShuttingDown, WorkersUnavailable
from app.heads import Head, Headers
from app.leftover import MOST_REST, ends_connection
from app.lifecycle import Lifecycle
from app.problems import problem
from app.record import Record
from app.scribe.desks import Desks
from app.starts import Starts
from app.telemetry import Telemetry
from app.transport import head
from app.visitor import Visitor

KNOWN_HEADS = 256
"""Heads remembered; beyond it, all are forgotten."""

SUM_UP_EVERY_S = 1.0
"""How often refusals are counted and logged."""

_ASKS_FOR_A_PLACE = re.compile(rb"POST [^ ]{0,512}/(?:forward|backward)[ ?]")
"""How a request begins that may be one of those for whom places are."""


class Known(NamedTuple):
    """What a head asks for.

    Attributes:
        length: of its body.
        nbytes: that its tensors have at least.
        expected: what they come to, as far as that is known.
    """

    operation: str
    action: str
    length: int
    nbytes: int
    expected: int


class Refusal(NamedTuple):
    """The whole answer to a request.

    Attributes:
        left: how many bytes of its body are still to come.
        last: whether the connection ends with it, once they have come.
    """

    answer: bytes
    left: int
    last: bool


class Gate:
    """Turns requests away; one for each server.

    Attributes:
        few: is told of the small requests that are let in, once they are whole.
        starts: tell when those that are let in begin.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        telemetry: Telemetry,
        lifecycle: Lifecycle,
        desks: Desks | None = None,
        origins: Origins = NO_ORIGINS,
    ) -> None:
        self._dispatcher = dispatcher
        self.few = dispatcher.few
        self.starts = Starts(dispatcher.few)
        self._desks = desks
        self._telemetry = telemetry
        self._lifecycle = lifecycle
        # A look-up compares keyed hashes first, so that its time tells nothing of keys in heads.
        self._known: dict[bytes, Known] = {}
        # Requests that ask for a place and that nobody else knows of yet: those that have not begun.
        self._passed = 0
        # How many, since they were summed up last.
        self._refused: dict[Known, int] = {}
        # What is the same in all answers is put together here.
        self._refusal = refusal = problem(QueueFull("%b", retry_after=1.0), "%b")
        own = {b"retry-after": b"%d", b"content-length": b"%d"}
        fields = [(name, own.get(name, value)) for name, value in refusal.fields()]
        # Such a request takes no time for anything.
        record = Record("%b", {}, monotonic(), status=refusal.status)
        fields += [*record.common_headers(), *origins.headers({})]
        self._form = head(refusal.status, fields) + refusal.body
        self._last_form = head(refusal.status, [*fields, CLOSE]) + refusal.body
        self._status = refusal.status
        self._fixed_bytes = len(refusal.body) - len("%b%b")  # of the body, beside detail and id

    def remember(self, head: Head, headers: Headers, known: Known) -> None:
        """A request was refused for want of room, and for nothing else.

        Args:
            head: that it began with.
            headers: what it says.
        """
        # Each origin has answers with headers of its own; those without one are alike.
        simple = known.length <= MOST_REST and all(name != b"origin" for name, _ in headers)
        if simple and head.is_plain(headers):
            if len(self._known) >= KNOWN_HEADS:
                self._known.clear()
            self._known[head.fixed] = known

    def refusal(self, data: bytes, head: Head, connection: int, address: str) -> Refusal | None:
        """The answer to a request that is turned away; None where it goes on.

        Args:
            data: the first bytes of it that have come. head: parted from them.
            connection, address: see `Visitor`.
        """
        if not self._dispatcher.crowded(self._passed + 1):
            self._pass(data)
            return None
        known = self._known.get(head.fixed)
        given, size = head.given, head.size
        if known is None or size + known.length < len(data) or self._lifecycle.draining:
            self._pass(data)
            return None
        visitor = Visitor(given.decode(), connection, address)
        try:
            error = self._dispatcher.refusal(visitor, known.nbytes, self._passed, known.expected)
        except (ShuttingDown, WorkersUnavailable, MemoryError):
            error = None  # it is found again on the long way
        except Exception as failure:  # noqa: BLE001 - that way it has its answer
            # There nothing may fail, as less is asked for.
            logs.server.error("a refusal failed", exc_info=failure)
            error = None
        if error is None:
            self._pass(data)
            return None
        if not self._refused:
            asyncio.get_running_loop().call_later(SUM_UP_EVERY_S, self._sum_up)
        self._refused[known] = self._refused.get(known, 0) + 1
        left = size + known.length - len(data)
        last = ends_connection(left, self._status, named=bool(given))
        return Refusal(self._answer(error, given, last=last), left, last)

    def left(self, connection: int, address: str) -> None:
        """A connection has been closed."""
        visitor = Visitor("", connection, address)
        self._dispatcher.left(visitor)
        if self._desks is not None:
            self._desks.left(visitor)

    def _answer(self, error: QueueFull, given: bytes, *, last: bool) -> bytes:
        """The bytes of an answer; `given` is the client's id of the request, empty where there is none."""
        name = text = given or new_request_id().encode()
        if b'"' in name or b"\\" in name:
            text = json.dumps(name.decode())[1:-1].encode()
        detail = error.detail.encode()
        size = self._fixed_bytes + len(detail) + len(text)
        form = self._last_form if last else self._form
        return form % (error.retry_after, size, name, detail, text)

    def _pass(self, data: bytes) -> None:
        """A request goes on, and is counted if it asks for a place."""
        if _ASKS_FOR_A_PLACE.match(data) is not None:
            if not self._passed:
                asyncio.get_running_loop().call_soon(self._turn)
            self._passed += 1

    def _turn(self) -> None:
        """Those who passed are accepted from now on, or wait for their bodies, or to begin."""
        self._passed = self.starts.places
        if self._passed:
            asyncio.get_running_loop().call_soon(self._turn)

    def _sum_up(self) -> None:
        """Count and log the refusals since the last time, by operation and action."""
        counts: Counter[tuple[str, str]] = Counter()
        for known, count in self._refused.items():
            counts[known.operation, known.action] += count
        self._refused.clear()
        for (operation, action), count in counts.items():
            self._telemetry.turned_away(operation, action, self._refusal, count)
            fields = {"operation": operation, "action": action, "requests": count}
            logs.server.info("refused for want of room", extra={"fields": fields})
