"""What a request's head says of it, beyond names and media types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from time import monotonic
from typing import NamedTuple

from starlette.types import Receive, Scope

from app.edge import CONNECTION, client_request_id
from app.errors import DeadlineExceeded, InvalidHeader
from app.record import Record
from app.reservation import Reservation
from app.settings import Settings
from app.visitor import Visitor
from app.wire import Exchange
from engine.errors import Issue

_DEADLINE = re.compile(rb"[0-9]{1,100}")
_DEADLINE_AT = ("header", "X-Deadline-Ms")


class Asked(NamedTuple):
    """A request whose head has been read.

    Attributes:
        scope, receive: of ASGI.
        exchange: the forms of its body and of its answer.
        deadline: on the monotonic clock; None where there is none.
        caller: whose turn it uses.
        visitor: who asks, to be known again after a refusal.
        reserved: the place that is kept for it while its body comes; None where none is.
    """

    record: Record
    scope: Scope
    receive: Receive
    exchange: Exchange
    deadline: float | None
    caller: str
    visitor: Visitor
    reserved: Reservation | None = None

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and monotonic() >= self.deadline


def deadline_of(record: Record, settings: Settings) -> float | None:
    """The deadline on the monotonic clock; it counts from the request's first byte."""
    given = record.headers.get(b"x-deadline-ms")
    if given is None:
        milliseconds = settings.default_deadline_ms
        if not milliseconds:
            return None
    elif _DEADLINE.fullmatch(given):
        milliseconds = int(given)
    else:
        raise InvalidHeader.at(
            _DEADLINE_AT,
            "not a number of milliseconds",
            "an integer of at least 0",
            given.decode("latin-1"),
        )
    return record.started + min(milliseconds, settings.max_deadline_ms) / 1e3


def passed(record: Record, settings: Settings, detail: str | None = None) -> DeadlineExceeded:
    """The error of a request whose deadline has passed; names the header where that set it."""
    given = record.headers.get(b"x-deadline-ms")
    if given is None:
        return DeadlineExceeded(detail)
    msg = "passed before the answer was ready"
    if int(given) > settings.max_deadline_ms:
        msg += f", brought forward to {settings.max_deadline_ms} ms"
    return DeadlineExceeded(detail, issues=[Issue(_DEADLINE_AT, msg, got=given.decode())])


def visitor_of(record: Record, scope: Scope) -> Visitor:
    """By what a refused client can be known when it comes again."""
    return Visitor(client_request_id(record), scope.get(CONNECTION, 0), record.client)


def text_of(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """A header as text; None where there is none."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")
