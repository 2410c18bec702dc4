"""Heads that were parsed before: a request whose head has the same bytes is not parsed again.

What a client sends again and again begins with the same bytes, but for its `X-Request-Id`. A head that
has come twice, and that the parser found right, is remembered with what it says. A small request that
begins with such a head, whole in the first bytes that come of it, is told to its connection as the parser
would tell it; everything else goes through the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

HEAD_BYTES = 4 << 10
"""Longest head that is remembered."""

MOST_HEADERS = 64
"""Most headers of one that is remembered: a thousand short ones take 25 times the room of their bytes."""

MOST_HEADS = 512
"""Heads remembered, and heads that have come once; beyond it, all are forgotten."""

BODY_BYTES = 128 << 10
"""Most of a body, beside which its head matters."""

LONG_WAY = frozenset((b"expect", b"proxy-connection", b"transfer-encoding", b"upgrade"))
"""Headers that ask for more than an answer; the parser takes `Proxy-Connection` for `Connection`."""

_REQUEST_ID = re.compile(rb"\r\nx-request-id: ([\x21-\x7e]{1,128}+)\r\n", re.IGNORECASE)

Headers = Sequence[tuple[bytes, bytes]]


class Head(NamedTuple):
    """The first bytes of a request as far as they are its head; empty where it is long.

    Attributes:
        fixed: its bytes without the `X-Request-Id`, by which it is remembered.
        given: that id, in its usual form; empty where there is none.
        size: of the whole, in bytes.
        place: where the id was; -1 where there is none.
    """

    fixed: bytes
    given: bytes
    size: int
    place: int = -1

    def is_plain(self, headers: Headers) -> bool:
        """Whether one with the same fixed bytes is sure to say the same, and asks for nothing special.

        Args:
            headers: what the parser has made of it.
        """
        names = [name for name, _ in headers]
        lines = self.fixed.split(b"\r\n")
        return (
            LONG_WAY.isdisjoint(names)
            and all(v.lower() == b"keep-alive" for name, v in headers if name == b"connection")
            # An id in another form than ours would stay in the head, and be taken for another's.
            and names.count(b"x-request-id") == bool(self.given)
            and lines[0].endswith(b" HTTP/1.1")
            # Lines may end otherwise, too: then the parser's head is not what it is here.
            and len(lines) == len(names) - bool(self.given) + 3
            and self.fixed.count(b"\n") == len(lines) - 1
        )


NO_HEAD = Head(b"", b"", 0)


def parted(data: bytes) -> Head:
    """The head at the beginning of a request; `NO_HEAD` where it is long, or not whole."""
    end = data.find(b"\r\n\r\n", 0, HEAD_BYTES) + 4
    if end < 4:
        return NO_HEAD
    head = data[:end]
    found = _REQUEST_ID.search(head)
    if found is None:
        return Head(head, b"", end)
    return Head(head[: found.start()] + head[found.end() - 2 :], found[1], end, found.start())


class Seen:
    """What a remembered head says. Stands in for the parser while it is told.

    Attributes:
        longest: id in bytes that the head is known to have room for; with a longer one it is parsed.
    """

    __slots__ = ("_headers", "_id", "_url", "longest")

    def __init__(self, url: bytes, headers: Headers, longest: int) -> None:
        self._url = url
        self._headers = list(headers)
        names = [name for name, _ in headers]
        self._id = names.index(b"x-request-id") if longest else -1
        self.longest = longest

    def get_method(self) -> bytes:
        """As the parser's."""
        return b"POST"

    def get_http_version(self) -> str:
        """As the parser's."""
        return "1.1"

    def should_keep_alive(self) -> bool:
        """As the parser's."""
        return True

    def should_upgrade(self) -> bool:
        """As the parser's."""
        return False

    def tell(self, owner: HeadOwner, given: bytes) -> None:
        """Tell a connection what the head says.

        Args:
            given: the request's id from its client, if there is one.
        """
        parser, owner.parser = owner.parser, self
        try:
            owner.on_message_begin()
            owner.url = self._url
            owner.headers += self._headers
            if self._id >= 0:
                owner.headers[self._id] = b"x-request-id", given
            owner.on_headers_complete()
        finally:
            owner.parser = parser


class HeadOwner(Protocol):
    """The connection, as far as it matters here: what the parser calls, and its answers to that.

    Attributes:
        heads: that were seen before.
        bypassed: the parser has not seen the head whose body is coming in.
        body_left: bytes of the body that are still to come.
    """

    parser: Any
    url: bytes
    headers: list[tuple[bytes, bytes]]
    heads: Heads
    bypassed: bool
    body_left: int

    def on_message_begin(self) -> None: ...
    def on_headers_complete(self) -> None: ...
    def on_body(self, body: bytes) -> None: ...
    def on_message_complete(self) -> None: ...


class Heads:
    """The memory; one for each server."""

    def __init__(self) -> None:
        # A look-up compares keyed hashes first, so that its time tells nothing of keys in heads.
        self._known: dict[tuple[bytes, int], Seen] = {}
        self._once: set[int] = set()

    def find(self, head: Head) -> Seen | None:
        """What a head says; None where it is to be parsed."""
        seen = self._known.get((head.fixed, head.place))
        return seen if seen is not None and len(head.given) <= seen.longest else None

    def remember(self, head: Head, url: bytes, headers: Headers) -> None:
        """A head has been parsed, and found right; `NO_HEAD` where its request did not begin with it."""
        if not head.fixed.startswith(b"POST "):
            return
        key = hash((head.fixed, head.place))
        if key not in self._once:
            # Most heads that differ at each request never come again.
            if len(self._once) >= MOST_HEADS:
                self._once.clear()
            self._once.add(key)
            return
        length = next((int(value) for name, value in headers if name == b"content-length"), 0)
        few = len(headers) <= MOST_HEADERS
        if few and 0 < length <= BODY_BYTES and head.is_plain(headers):
            if len(self._known) >= MOST_HEADS:
                self._known.clear()
            self._known[head.fixed, head.place] = Seen(url, headers, len(head.given))


def tell_seen(owner: HeadOwner, data: bytes, head: Head) -> bytes:
    """Tell a connection what its client sent, where no parser is needed: a head seen before, and its body.

    Args:
        data: that came.
        head: parted from it; `NO_HEAD` where no request begins with it.

    Returns:
        What is left of the data, for the parser.
    """
    if not owner.bypassed:
        seen = owner.heads.find(head)
        if seen is None:
            return data
        seen.tell(owner, head.given)
        owner.bypassed, data = True, data[head.size :]
    left = owner.body_left
    if part := data[:left]:
        owner.on_body(part)
    if len(data) >= left:
        owner.bypassed = False
        owner.on_message_complete()
    return data[left:]
