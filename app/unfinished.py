"""What a connection says itself of a request that never comes to its end, in an answer like all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from app.edge import CLOSE, RECORD, UNKEPT, new_request_id, record_of
from app.heads import Headers
from app.problems import Problem
from app.record import Record
from app.transport import head


class RequestOwner(Protocol):
    """The connection, as far as it matters here.

    Attributes:
        begun: a request has begun and is not whole.
        scope: its own, with the headers that have come; its method is there once all of them have.
        parser, url: that read it.
        client: address and port, where they are known.
    """

    begun: bool
    scope: Any
    parser: Any
    url: bytes
    client: tuple[str, int] | None


class Last(NamedTuple):
    """The whole answer after which a connection is closed, and the story of what it answers."""

    record: Record
    answer: bytes


def story(owner: RequestOwner, since: float) -> Record:
    """What is known of the request that comes in; where none has begun, nothing.

    Args:
        since: when its first byte was waited for or came.
    """
    if not owner.begun:
        # The headers that were read last are those of a request that has an answer of its own.
        client = owner.client[0] if owner.client else ""
        return Record(new_request_id(), {}, since, client=client)
    record = owner.scope.get(RECORD)
    if record is not None:
        return replace(record)  # the application goes on with its own
    # Before the address has come, the parser's method may be that of the request before.
    method = owner.parser.get_method().decode() if owner.url else ""
    return record_of({"method": method, "path": "", **owner.scope})


def last_answer(refusal: Problem, record: Record, more: Headers) -> Last:
    """Answer with a problem, and end the story with that.

    Args:
        record: of the request; to `HEAD` the body is not sent, whose length is told all the same.
        more: headers beside those that follow from these.
    """
    record.status, record.problem = refusal.status, refusal.slug
    own = UNKEPT, CLOSE
    headers = (*more, *refusal.fields(), *record.common_headers(), *own)
    body = b"" if record.method == "HEAD" else refusal.body
    record.bytes_out = len(body)
    return Last(record, head(refusal.status, headers) + body)
