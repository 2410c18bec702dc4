"""An HTTP connection within limits: uvicorn's own, with bounds on what a client may make it hold.

uvicorn's parser takes headers of any size and waits for a request for ever; both are bounded here,
by size as the bytes come in and by time through `sweep`, which costs requests nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import monotonic
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from app.edge import ARRIVED, new_request_id
from app.errors import (
    HeadersTooLarge,
    MalformedRequest,
    RequestTimeout,
    ServiceError,
    TooManyConnections,
)
from app.problems import problem
from app.settings import Settings


class Connection(HttpToolsProtocol):
    """One connection; `bounded` makes the class for given settings."""

    settings: Settings

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._silent = 0  # bytes since the parser last had something to tell
        self._head = 0  # bytes of request line, headers and trailers of this request
        self._refusal: ServiceError | None = None
        self._arrived = 0.0  # when the request that is coming in began, or the connection
        self._coming: str | None = None  # the part of it that is awaited: headers, body or none

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one connection too many."""
        super().connection_made(transport)
        self._expect("headers")
        if len(self.connections) > self.settings.max_connections:
            self._refuse(TooManyConnections(retry_after=1.0))

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless it is being fed what it can only swallow."""
        if self.transport.is_closing():
            return
        self._silent += len(data)
        super().data_received(data)
        if self._silent > self.settings.max_header_bytes and not self.transport.is_closing():
            self._refuse(self._too_large())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._expect("headers")
        self._head = 0
        self.scope[ARRIVED] = self._arrived  # type: ignore[literal-required]

    def on_url(self, url: bytes) -> None:
        """A part of the request's address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers are counted and otherwise ignored."""
        self._count(len(name) + len(value))
        if self._coming == "headers":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The body follows."""
        self._silent = 0
        self._coming = "body"
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._silent = 0
        self._coming = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words are not ours
        """Refuse what is not HTTP, or what `_count` stopped."""
        self._refuse(self._refusal or MalformedRequest())

    def expire(self, now: float) -> None:
        """End the connection if what it awaits has taken too long."""
        waited = now - self._arrived
        if self._coming == "headers" and waited > self.settings.header_timeout_s:
            self._refuse(RequestTimeout("The request's headers did not arrive in time."))
        elif self._coming == "body" and waited > self.settings.body_timeout_s:
            self._refuse(RequestTimeout("The request's body did not arrive in time."))

    def _expect(self, part: str) -> None:
        self._silent = 0
        self._coming = part
        self._arrived = monotonic()

    def _count(self, size: int) -> None:
        self._silent = 0
        self._head += size
        if self._head > self.settings.max_header_bytes:
            self._refusal = self._too_large()
            # The parser takes no other refusal than an exception in its callback.
            raise self._refusal

    def _too_large(self) -> ServiceError:
        limit = self.settings.max_header_bytes
        return HeadersTooLarge(f"The request line and headers exceed max_header_bytes, {limit}.")

    def _refuse(self, error: ServiceError) -> None:
        """Answer for a request that never reaches the application, and hang up."""
        self._coming = None
        under_way = self.cycle is not None and self.cycle.response_started
        if not under_way or self.cycle.response_complete:
            self.transport.write(self._answer(error))
        self.transport.close()

    def _answer(self, error: ServiceError) -> bytes:
        refusal = problem(error, new_request_id())
        headers = {**refusal.headers, "Connection": "close"}
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        head = "".join(lines) + f"Content-Length: {len(refusal.body)}\r\n\r\n"
        return STATUS_LINE[refusal.status] + head.encode() + refusal.body


def bounded(settings: Settings) -> type[Connection]:
    """The connection class of a server with these settings."""
    return type("BoundedConnection", (Connection,), {"settings": settings})


def sweep(connections: Iterable[Any]) -> None:
    """End the connections that have waited too long; to be called about once a second."""
    now = monotonic()
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.expire(now)
