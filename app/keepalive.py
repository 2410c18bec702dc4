"""Which connections are kept, and how long one on which nothing is asked: uvicorn's timer, seldom set."""

from __future__ import annotations

import math

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.edge import KEPT, LAST
from app.transport import unread_bytes

LAST_READ_S = 0.05
"""How long it is waited, before a time counts as over, for what has come and was not read."""


class KeepAlive(HttpToolsProtocol):
    """The part of a connection that waits for its next request."""

    _idle_since = -math.inf  # when a request was answered that found a timer and left it

    def on_headers_complete(self) -> None:
        """Keep a connection of HTTP/1.0 whose client asks for it, which uvicorn does not."""
        super().on_headers_complete()
        last = {LAST: not self.cycle.keep_alive}
        self.scope |= last  # type: ignore[typeddict-item]
        if self.scope["http_version"] != "1.0" or self.parser.should_upgrade():
            return
        # The parser takes Proxy-Connection for Connection; it is no word to us (RFC 9112, section C.2.2).
        # And this version knows no chunks: for a proxy their end may be elsewhere (section 6.1).
        names = {name for name, _ in self.headers}
        asked = b"connection" in names and b"transfer-encoding" not in names
        if asked and self.parser.should_keep_alive():
            self.cycle.keep_alive = True
            kept = {KEPT: True, LAST: False}
            self.scope |= kept  # type: ignore[typeddict-item]

    def answering(self) -> bool:
        """Whether the application has a request of this connection."""
        return self.cycle is not None and not self.cycle.response_complete

    def await_next(self) -> None:
        """The connection is idle from here on, as it is after an answer of the application."""
        self._unset_keepalive_if_required()
        self._time(self.timeout_keep_alive)

    def idle_again(self) -> None:
        """It has been used for a moment only: a timer costs more than a refusal."""
        if self.timeout_keep_alive_task is None:
            self.await_next()
        else:
            self._idle_since = self.loop.time()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless it was used meanwhile or its next request has come."""
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._time(left)
        elif self.has_come():
            self._time(LAST_READ_S)
        else:
            super().timeout_keep_alive_handler()

    def has_come(self) -> bool:
        """Whether the client has sent what is not read yet: where the loop is busy, that may be long."""
        return not self.transport.is_closing() and unread_bytes(self.transport) > 0

    def _time(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )
