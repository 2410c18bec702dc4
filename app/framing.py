"""Where a request ends, in the cases that the parser leaves open.

A service that takes for the next request what a proxy before it took for a body can be made to
answer one caller with what another asked for. So a body is read by its length or in chunks, as
every party does, and whatever a client wishes beyond that is declined or refused.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserUpgrade,
    HttpRequestParser,
)

from app.errors import BodyTooLarge, MalformedRequest, ServiceError
from app.heads import Headers
from app.headsize import HeadSize

_HOP_BY_HOP = (b"upgrade", b"http2-settings")
"""What a wish for another protocol consists of, beside `Connection`, which names it."""

_HOST = re.compile(
    rb"(?:\[[0-9A-Za-z:.%_~-]+\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
)
"""A name or an address and a port, all of which may be empty (RFC 3986, section 3.2.2)."""

_A_HOST = "one host, with or without a port"

_HOST_AT, _CODING_AT = ("header", "Host"), ("header", "Transfer-Encoding")

_WITHOUT_PATH = re.compile(rb"([a-z][a-z0-9+.-]*://[^/?#]+)([?#].*)?", re.IGNORECASE)
"""An address in absolute form that says nothing of a path."""

_ESCAPED_SLASH = re.compile(rb"%(2f)", re.IGNORECASE)

_VERSIONS = ("1.1", "1.0")

_METHOD = re.compile(rb"(?:\r?\n)*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) ")
"""How a request begins, of whatever method (RFC 9112, section 3); the longest that is registered has 17."""

LINE_BYTES, FIELD_BYTES = len("  HTTP/1.1\r\n\r\n"), len(": \r\n")
"""What stands in a head beside the method, the address, and the names and values of fields."""

PIECE_BYTES = 2 << 10
"""So much is parsed at most before it is seen whether a request waits for the one before it. A request
may be 25 bytes, and takes some kilobytes once it is parsed."""

MOST_PIECES = 256
"""Pieces of bodies after which others have their turn: of chunks of a byte those that are parsed together,
which take less than a millisecond, and of large chunks all that a read brings."""


class ParserOwner(Protocol):
    """The connection, as far as it matters here.

    Attributes:
        parser: whose callbacks it takes. url, headers: of the request that was parsed last.
        expect_100_continue: its client waits for a word before it sends the body.
        head_size: of the head that is coming in.
        declining: that request's head wished for another protocol, and is to be told again without.
        body_left: bytes of its body that are still to pass the parser.
        pieces: of bodies, of which it was told since it was set to 0.
        cycle: the request that the application has. pipeline: those that wait for it.
    """

    parser: Any
    url: bytes
    headers: list[tuple[bytes, bytes]]
    expect_100_continue: bool
    head_size: HeadSize
    declining: bool
    body_left: int
    pieces: int
    cycle: Any
    pipeline: Any

    def answering(self) -> bool: ...


class Stranger(HttpRequestParser):
    """Reads a request of a method that the parser does not know, which is told that it is another.

    It is the last of its connection: those after it would get its method.
    """

    TOLD = b"PUT"

    def __init__(self, owner: ParserOwner, method: bytes) -> None:
        super().__init__(owner)
        self._method = method

    def get_method(self) -> bytes:
        """The client's."""
        return self._method

    def should_keep_alive(self) -> bool:
        """Not at all."""
        return False


def feed(owner: ParserOwner, data: bytes, first: bool = False) -> memoryview:
    """Feed the parser, and where it stops for another protocol, a new one, which is told of none.

    A method that it does not know is as good as others that nothing here takes.

    Args:
        first: a request begins with the data, and nothing before it is to be answered.

    Returns:
        What was not parsed, since a request waits for the one before it, or others for their turn.

    Raises:
        HttpParserError: it is not HTTP, or a callback refused it; then that is the context.
        HeadersTooLarge: what no callback was told of is too long.
    """
    rest = memoryview(data)
    owner.pieces = 0
    # A body of a known length is one piece, and whoever receives its rest goes by what has been parsed.
    while rest and not owner.pipeline and (owner.pieces < MOST_PIECES or owner.body_left > 0):
        piece, head = rest[: max(PIECE_BYTES, owner.body_left)], b""
        taken = len(piece)
        owner.head_size.give(taken)
        try:
            owner.parser.feed_data(piece)
        except HttpParserUpgrade as upgrade:
            if not owner.declining:
                # CONNECT: what follows is for a tunnel, and there is none.
                owner.cycle.keep_alive = False
                return rest[:0]
            method, version = owner.parser.get_method(), owner.parser.get_http_version()
            known = not isinstance(owner.parser, Stranger)
            owner.parser = HttpRequestParser(owner) if known else Stranger(owner, method)
            told = method if known else Stranger.TOLD
            taken, head = upgrade.args[0], without_upgrade(told, owner.url, version, owner.headers)
        except HttpParserInvalidMethodError:
            # Where it was none of the first request, that has the application by now.
            found = first and not owner.answering() and _METHOD.match(data)
            if not found:
                raise
            first, owner.parser = False, Stranger(owner, found[1])
            rest, taken = memoryview(Stranger.TOLD + data[found.end(1) :]), 0
        owner.head_size.give(taken - len(piece))
        if head:
            owner.parser.feed_data(head)
        rest = rest[taken:]
        owner.head_size.check()
    return rest


_OVERFLOWS = ("Content-Length overflow", "Chunk size overflow")
"""What the parser says of a length that it cannot hold."""


_PLAINLY = {"Pause on PRI/Upgrade": "HTTP/2 begins so, and is not spoken here"}
"""What is said in place of reasons that only the parser's makers understand."""


def cause_of(error: HttpParserError | ServiceError | MemoryError) -> ServiceError | MemoryError:
    """Why a request went no further: what a callback of ours raised, else that it is not HTTP."""
    cause = error.__context__ if isinstance(error, HttpParserError) else error
    if isinstance(cause, ServiceError | MemoryError):
        return cause
    # The parser's reasons are texts of its own, with no byte of the client's; a callback's may have some.
    if isinstance(error, HttpParserCallbackError) or not error.args:
        return MalformedRequest()
    if error.args[0] in _OVERFLOWS:
        return BodyTooLarge.at((), "the body is longer than any limit", "fewer than 2^64 bytes")
    reason = _PLAINLY.get(error.args[0], error.args[0])
    return MalformedRequest(f"{MalformedRequest.summary[:-1]}: {reason}.")


def accept_head(owner: ParserOwner) -> None:
    """Check the head that was parsed last, decline what it wishes beyond, and mend what is left.

    Raises:
        MalformedRequest: its host or its body's length could be taken in more than one way, or it is of
            another version of HTTP.
    """
    check_version(owner.parser.get_http_version())
    check_host(owner.parser.get_http_version(), owner.headers)
    check_framing(owner.headers)
    owner.declining = is_upgrade(owner.parser)
    if not owner.declining:
        mend(owner)


def is_upgrade(parser: Any) -> bool:
    """Whether the parser will take what follows the head that it has read for another protocol's."""
    return bool(parser.should_upgrade()) and parser.get_method() != b"CONNECT"


def mend(owner: ParserOwner) -> None:
    """Take a head as it is meant where uvicorn takes it by the letter.

    An address without a path is that of `/` (RFC 9112, section 3.2.2). A slash that is escaped separates
    nothing (RFC 3986, section 2.2), and stays escaped when uvicorn reads the path. In HTTP/1.0 nobody waits
    for ``100 Continue``, nor knows what it is (RFC 9110, section 10.1.1).
    """
    found = _WITHOUT_PATH.fullmatch(owner.url)
    if found is not None:
        owner.url = b"%b/%b" % (found[1], found[2] or b"")
    if b"%" in owner.url:
        path, mark, query = owner.url.partition(b"?")
        owner.url = _ESCAPED_SLASH.sub(rb"%25\1", path) + mark + query
    if owner.parser.get_http_version() == "1.0":
        owner.expect_100_continue = False


def check_version(version: str) -> None:
    """See that a request is of a version that is spoken here; the parser takes some more.

    Raises:
        MalformedRequest: it is not, or names none, as in HTTP/0.9.
    """
    if version not in _VERSIONS:
        raise MalformedRequest("This version of HTTP is not spoken here; 1.1 and 1.0 are.")


def check_host(version: str, headers: Headers) -> None:
    """See that there is one host, which every party takes for the same (RFC 9112, section 3.2).

    Raises:
        MalformedRequest: there is none in HTTP/1.1, there are several, or it is no host.
    """
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1:
        got = [host.decode("latin-1") for host in hosts]
        raise MalformedRequest.at(_HOST_AT, "there are several", _A_HOST, got)
    if not hosts and version == "1.1":
        raise MalformedRequest.at(_HOST_AT, "missing", _A_HOST)
    if hosts and _HOST.fullmatch(hosts[0]) is None:
        raise MalformedRequest.at(_HOST_AT, "not a host", _A_HOST, hosts[0].decode("latin-1"))


def check_framing(headers: Headers) -> None:
    """See that a body's end is told in a way that is read here.

    Raises:
        MalformedRequest: there is a transfer coding other than `chunked`.
    """
    codings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    if codings not in ([], [b"chunked"]):
        got = b", ".join(codings).decode("latin-1")
        raise MalformedRequest.at(_CODING_AT, "this coding is not read here", "chunked", got)


def without_upgrade(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """A request's head without its wish for another protocol (RFC 9110, section 7.8).

    The parser takes for the other protocol's all that follows a head with such a wish, the body too.
    """
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode())]
    for name, value in headers:
        if name == b"connection":
            options = [option.strip() for option in value.split(b",")]
            value = b", ".join(o for o in options if o.lower() not in _HOP_BY_HOP)
        if name not in _HOP_BY_HOP:
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join((*lines, b"", b""))
