"""An HTTP connection within limits: uvicorn's own, with bounds on what a client may make it hold.

Its parser takes headers of any size and waits for ever; both are bounded here, by size as the bytes
come in and by time through `expire`, which the server calls about once a second.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

from httptools import HttpParserError, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.addresses import Addresses
from app.edge import ARRIVED, CONNECTION, FIRST_BYTES, GONE, LINGER_S, REST, new_request_id
from app.errors import (
    HeadersTooLarge,
    MalformedRequest,
    RateLimited,
    RequestTimeout,
    ServiceError,
    TooManyConnections,
)
from app.framing import check_framing, check_host, feed, is_upgrade
from app.gate import HEAD_BYTES, Gate, Refusal
from app.incoming import SINK_BYTES, Incoming
from app.problems import problem
from app.record import Record
from app.settings import Settings
from app.telemetry import Telemetry
from app.transport import Flow, last_answer, unsent_bytes

_numbers = itertools.count(1)

LAST_READ_S = 0.05
"""How long it is waited, before a time counts as over, for what has come and was not read."""

LEAVING_CONNECTIONS = 64
"""Connections beyond the limit that are held for the moment in which their refusal is read."""

LEAVING_OF_AN_ADDRESS = 8
"""The same of one address, beyond its own limit."""


class Connection(HttpToolsProtocol):
    """One connection; `bounded` makes the class for given settings."""

    settings: Settings
    telemetry: Telemetry
    gate: Gate
    held: Addresses
    leaving: Addresses

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
        self._incoming: Incoming | None = None  # the large body that is being received
        self.body_left = 0  # bytes of a body that are still to pass the parser
        self._held: deque[bytes] = deque()  # not parsed while requests wait that were; one at most
        self._arrived = 0.0  # when the request that is coming in began, or the connection
        self._coming: str | None = None  # the part of it that is awaited: headers, body or none
        self._unsent = 0  # bytes of answers that the client had not taken at the last sweep
        self._taken = 0.0  # when it last took some
        self._number = next(_numbers)
        self._current: RequestResponseCycle | None = None  # the request that is being answered
        self._begun = False  # a request has begun and is not whole
        self.declining = False  # its head is told again, without its wish for another protocol
        self._first = b""  # what the request that is coming in began with
        self._turned_away = False  # it has its answer already
        self._idle_since = -math.inf  # when the last was answered that set no timer
        self._looked = False  # nothing came while it was looked once more for a next request
        self._leaving: asyncio.TimerHandle | None = None  # set once a refusal has been sent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one connection too many."""
        super().connection_made(transport)
        self.flow = Flow(transport, self.pipeline, self._held)
        self._gone: asyncio.Future[None] = self.loop.create_future()
        self._expect("headers")
        refusal = self._without_place()
        # Those who are only told so take nobody's place.
        self._among = self.leaving if refusal else self.held
        self._among.enter(self._address)
        if refusal:
            self._refuse(refusal)

    def _without_place(self) -> ServiceError | None:
        """How a connection is refused that is one too many."""
        if self.held.total >= self.settings.max_connections:
            return TooManyConnections(retry_after=1.0)
        most = self.settings.max_address_connections
        if most and self.held.of(self._address) >= most:
            detail = f"This address holds as many connections as one may, max_address_connections, {most}."
            return RateLimited(detail, retry_after=1.0)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who work for the client."""
        self._gone.set_result(None)
        if self._current is not None:
            self._current.disconnected = True  # where others wait, uvicorn tells the last of them
        self.gate.left(self._number, self._address)
        self._among.leave(self._address)
        if self._leaving is not None:
            self._leaving.cancel()
        self._unset_keepalive_if_required()  # else the timer would hold us for as long as it runs
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless it is being fed what it can only swallow."""
        if self._leaving is not None or self.transport.is_closing():
            return
        if self._between:
            refusal = self.gate.refusal(data, self._number, self._address)
            if refusal is not None:
                self._turn_away(refusal)
                return
            self._first = data[:HEAD_BYTES]
        self._silent += len(data)
        try:
            if rest := feed(self, data):
                self._held.append(bytes(rest))
        except HttpParserError as error:
            cause = error.__context__  # what a callback of ours raised
            self._refuse(cause if isinstance(cause, ServiceError) else MalformedRequest())
        if self._silent > self.settings.max_header_bytes and not self.transport.is_closing():
            self._refuse(HeadersTooLarge(self.settings.max_header_bytes))
        idle = self._coming is None and self._leaving is None and not self._answering()
        if idle and self._silent and self.timeout_keep_alive_task is not None:
            return  # empty lines, with which nobody keeps a connection open
        self._looked = False
        self._unset_keepalive_if_required()
        if idle:
            # These bytes were the rest of a request that has its answer.
            self._await_next()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        if not self.declining:
            self._expect("headers")
        self._head = 0
        self._begun = True
        ours = {
            ARRIVED: self._arrived,
            CONNECTION: self._number,
            FIRST_BYTES: self._first,
            GONE: self._gone,
            REST: self.rest,
        }
        self._first = b""  # what follows in the same bytes did not begin with them
        self.scope |= ours  # type: ignore[typeddict-item]

    def on_url(self, url: bytes) -> None:
        """A part of the request's address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers are counted and otherwise ignored."""
        self._count(len(name) + len(value))
        if self._coming == "headers":
            # White space around it is no part of a value (RFC 9112, section 5); the parser leaves some.
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """The body follows."""
        self._silent = 0
        check_host(self.parser.get_http_version(), self.headers)
        check_framing(self.headers)
        self.declining = is_upgrade(self.parser)
        if self.declining:
            return
        self._coming = "body"
        self.body_left = next((int(v) for name, v in self.headers if name == b"content-length"), 0)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._silent = 0
        self.body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self.declining:
            return
        self._silent = 0
        self._coming, self._begun = None, False
        super().on_message_complete()
        if not self.pipeline:
            # A transport that is not read from does not tell when the client leaves.
            self.flow.resume_reading()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._current = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """The answer is out; what is left of a body that it did not need is not even parsed."""
        if self._held:
            # Before the next request is begun, whose body may be in it.
            self.loop.call_soon(self._parse_on)
        super().on_response_complete()
        unread = self._coming == "body" and not self._answering()
        if unread and self.body_left >= SINK_BYTES and not self.transport.is_closing():
            Incoming(self, self.body_left)

    async def rest(self, first: bytes, size: int, count: Callable[[int], None]) -> memoryview:
        """Receive the rest of the body that is under way; see `Incoming`."""
        self.body_left = 0
        self._incoming = Incoming(self, size - len(first))
        try:
            return await self._incoming.whole(first, count)
        finally:
            self._incoming = None

    def body_received(self) -> None:
        """Go on behind a body that the parser has not seen, with a parser that does not miss it."""
        if self._turned_away:
            self._turned_away = False
            self._await_next()
            return
        self.parser = HttpRequestParser(self)
        self.on_message_complete()

    def _parse_on(self) -> None:
        """No request waits any more, so that there is room for what was held."""
        if self._held and not self.pipeline:
            data = self._held.popleft()
            self.flow.resume_reading()
            self.data_received(data)

    @property
    def _between(self) -> bool:
        """Whether the next byte is a request's first, and its answer could be sent at once."""
        if self._begun or self.flow.write_paused:
            return False
        return self.cycle is None or self.cycle.response_complete

    def _turn_away(self, refusal: Refusal) -> None:
        """Answer a request that is not so much as parsed; what is to come of its body is nobody's."""
        self.transport.write(refusal.answer)
        self.server_state.total_requests += 1
        if refusal.left:
            self._unset_keepalive_if_required()
            self._turned_away = True
            self._expect("body")
            Incoming(self, refusal.left)
        elif self.timeout_keep_alive_task is not None:
            self._idle_since = self.loop.time()
        else:
            self._await_next()

    def _await_next(self) -> None:
        """The connection is idle from here on, as it is after an answer of the application."""
        self._coming = None
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless it was used meanwhile: a timer costs more than a refusal."""
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )
        elif not self._looked:
            # After a time in which we did not run, this comes before what lies in the socket.
            self._looked = True
            self.timeout_keep_alive_task = self.loop.call_later(
                LAST_READ_S, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def expire(self, now: float, lost: float = 0.0) -> None:
        """End the connection if the client has been too slow to send, or to take its answer.

        Args:
            lost: seconds in which we did not run; they do not count against the client.
        """
        self._arrived = min(self._arrived + lost, now)
        self._taken = min(self._taken + lost, now)
        unsent = unsent_bytes(self.transport)
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._taken = unsent, now
        if now - self._taken > self.settings.answer_timeout_s:
            self.telemetry.connection_refused("answer-not-taken")
            self.transport.abort()
            return
        if self.pipeline:
            # What waits for the answers before it is not read, so its time does not run.
            self._arrived = now
        waited = now - self._arrived
        if self._coming == "headers" and waited > self.settings.header_timeout_s:
            if not self._head and not self._silent:
                self.transport.close()  # it was opened and never used; nobody waits for an answer
                return
            self._refuse(RequestTimeout("The request's headers did not arrive in time."))
        elif self._coming == "body" and waited > self.settings.body_timeout_s:
            if not self._answering():
                self.transport.close()  # it has its answer, and sends a body that nobody wants
                return
            self._refuse(RequestTimeout("The request's body did not arrive in time."))

    def _expect(self, part: str) -> None:
        self._silent = 0
        self._coming = part
        self._arrived = monotonic()

    def _count(self, size: int) -> None:
        self._silent = 0
        self._head += size
        if self._head > self.settings.max_header_bytes:
            raise HeadersTooLarge(self.settings.max_header_bytes)

    def _refuse(self, error: ServiceError) -> None:
        """Answer for a request that never comes to its end, and hang up."""
        record = Record(new_request_id(), {}, self._arrived)
        refusal = problem(error, record.request_id)
        record.status = refusal.status
        self.telemetry.connection_refused(refusal.slug)
        coming, self._coming = self._coming, None
        self._held.clear()
        if self._answering() and coming != "body":
            # The request before it is owed its answer, and is the last to get one.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self._answering() and self.cycle.response_started:
            self.transport.close()
            return
        self.transport.write(last_answer(refusal, record))
        self._leave()

    def _leave(self) -> None:
        """Hang up once the client has: it may still be sending, and would never see the refusal."""
        if self._answering():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self._incoming is not None:
                self._incoming.give_up()
        if self._among is self.leaving and self._crowded():
            self.transport.close()
            return
        self.flow.resume_reading()
        self.transport.write_eof()
        self._leaving = self.loop.call_later(LINGER_S, self.transport.close)

    def _crowded(self) -> bool:
        """Whether more are leaving than can be held while they read why."""
        mine = self.settings.max_address_connections and self.leaving.of(self._address)
        return self.leaving.total > LEAVING_CONNECTIONS or mine > LEAVING_OF_AN_ADDRESS

    def _answering(self) -> bool:
        """Whether the application has a request of this connection."""
        return self.cycle is not None and not self.cycle.response_complete


def bounded(settings: Settings, telemetry: Telemetry, gate: Gate) -> type[Connection]:
    """The connection class of a server."""
    ours = {
        "settings": settings,
        "telemetry": telemetry,
        "gate": gate,
        "held": Addresses(),
        "leaving": Addresses(),
    }
    return type("BoundedConnection", (Connection,), ours)
