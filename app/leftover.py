"""What is still to come of a body that was refused, and what that means for its connection."""

from __future__ import annotations

from app.record import Record

MOST_REST = 256 << 20
"""Of a refused body no more bytes are thrown away, most of them by the kernel. A client that is cut off
while it sends often takes that for the network's fault, and sees no answer."""

LONG_REST = 4 << 20
"""A refused body of which so much is still to come ends its connection, as the answer says: who reads that
stops sending and hangs up (RFC 9112, section 9.5). To send less takes no longer than to connect anew."""

AGAIN = (429, 503)
"""Statuses of answers that tell when to come again."""


def rest(record: Record) -> float:
    """How many bytes of a body may still come."""
    if not record.unread:
        return 0
    if b"transfer-encoding" in record.headers:
        return float("inf")
    return record.body_length - record.bytes_in


def awaits_word(record: Record) -> bool:
    """Whether the client may wait for ``100 Continue`` and, answered otherwise, send no body at all.

    There is no telling where the next request on its connection begins: clients differ.
    """
    expected = record.headers.get(b"expect")
    awaits = expected is not None and expected.lower() == b"100-continue"
    return record.unread and awaits and not record.bytes_in


def is_endless(record: Record) -> bool:
    """Whether the rest of a refused body is not worth waiting for, or may never come."""
    return rest(record) > MOST_REST or awaits_word(record)


def ends_connection(left: float, status: int, *, named: bool) -> bool:
    """Whether a refused body that is worth waiting for ends its connection once it has come.

    Args:
        left: bytes of it that are still to come.
        status: of the refusal.
        named: whether the client gave a name. Who gave none is known by its connection when it
            comes again.
    """
    return left >= LONG_REST and (named or status not in AGAIN)
