"""Where a request ends, in the cases that the parser leaves open.

A service that takes for the next request what a proxy before it took for a body can be made to
answer one caller with what another asked for. So a body is read by its length or in chunks, as
every party does, and whatever a client wishes beyond that is declined or refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from httptools import HttpParserUpgrade, HttpRequestParser

Headers = Sequence[tuple[bytes, bytes]]

_HOP_BY_HOP = (b"upgrade", b"http2-settings")
"""What a wish for another protocol consists of, beside `Connection`, which names it."""


class Owner(Protocol):
    """The connection, as far as it matters here.

    Attributes:
        parser: whose callbacks it takes. url, headers: of the request that was parsed last.
        declining: that request's head wished for another protocol, and is to be told again without.
        cycle: the request that the application has.
    """

    parser: Any
    url: bytes
    headers: list[tuple[bytes, bytes]]
    declining: bool
    cycle: Any


def feed(owner: Owner, data: bytes) -> None:
    """Feed the parser, and where it stops for another protocol, a new one, which is told of none.

    Raises:
        HttpParserError: it is not HTTP, or a callback refused it.
    """
    coming: list[bytes | memoryview] = [data]
    while coming:
        piece = coming.pop()
        try:
            owner.parser.feed_data(piece)
        except HttpParserUpgrade as upgrade:
            if not owner.declining:
                # CONNECT: what follows is for a tunnel, and there is none.
                owner.cycle.keep_alive = False
                return
            # There may be many such requests in a row, so what follows is not copied.
            coming.append(memoryview(piece)[upgrade.args[0] :])
            method, version = owner.parser.get_method(), owner.parser.get_http_version()
            coming.append(without_upgrade(method, owner.url, version, owner.headers))
            owner.parser = HttpRequestParser(owner)


def is_upgrade(parser: Any) -> bool:
    """Whether the parser will take what follows the head that it has read for another protocol's."""
    return bool(parser.should_upgrade()) and parser.get_method() != b"CONNECT"


def is_framed(headers: Headers) -> bool:
    """Whether a body's end is told in a way that is read here: not by any coding but `chunked`."""
    codings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    return codings in ([], [b"chunked"])


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
