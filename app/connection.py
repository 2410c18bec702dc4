"""An HTTP connection within limits: uvicorn's own, with bounds on what a client may make it hold.

Its parser takes headers of any size and waits for ever; both are bounded here, by size as the bytes
come in and by time through `expire`, which the server calls about once a second.
"""

from __future__ import annotations

import asyncio
import itertools
from time import monotonic
from typing import Any

from httptools import HttpParserError, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.server import ServerState

from app.access import Access
from app.cors import Origins
from app.edge import ANSWERED, ARRIVED, CONNECTION, GONE, HEAD, OUTLAST, REST
from app.errors import HeadersTooLarge, RequestTimeout, ServiceError
from app.framing import FIELD_BYTES, LINE_BYTES, accept_head, cause_of, feed
from app.gate import Gate, Refusal
from app.heads import NO_HEAD, Heads, Seen, parted, tell_seen
from app.headsize import HeadSize
from app.incoming import SINK_BYTES, Incoming, Wanted
from app.lanes import Lanes
from app.parting import Parting
from app.patience import Part, Patience
from app.places import Places
from app.problems import problem
from app.settings import Settings
from app.telemetry import Telemetry
from app.transport import Flow, unsent_bytes
from app.unfinished import Last, last_answer, story
from app.unparsed import Turns, Unparsed

_numbers = itertools.count(1)


class Connection(Parting):
    """One connection; `bounded` makes the class for given settings."""

    settings: Settings
    telemetry: Telemetry
    gate: Gate
    heads: Heads
    places: Places
    lanes: Lanes
    origins: Origins

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.head_size = HeadSize(self.settings.max_header_bytes)
        self._incoming: Incoming | None = None  # the large body that is being received
        self.body_left = 0  # bytes of a body that are still to pass the parser
        self.bypassed = False  # they do not: it has not seen their head
        self.pieces = 0  # of bodies, of which the parser has told while it was fed last
        self._unparsed = Unparsed(self, self.turns)
        self._patience = Patience(self.settings)
        self.number = next(_numbers)
        self.begun = False  # a request has begun and is not whole
        self.declining = False  # its head is told again, without its wish for another protocol
        self._first = NO_HEAD  # what the request that is coming in began with
        self._turned_away = False  # it has its answer already

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one connection too many."""
        super().connection_made(transport)
        self.flow = Flow(transport, self.pipeline, self._unparsed)
        self._gone: asyncio.Future[None] = self.loop.create_future()
        self._address = self.client[0] if self.client else ""
        self._expect("headers")
        self._place = self.places.enter(self._address)
        if self._place.refusal is not None:
            self._refuse(self._place.refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who work for the client."""
        self._incoming = None  # which has told us, and holds us
        self._gone.set_result(None)
        if self.current is not None:
            self.current.disconnected = True  # where others wait, uvicorn tells the last of them
        self.gate.left(self.number, self._address)
        self._place.leave()
        self._unset_keepalive_if_required()  # else the timer would hold us for as long as it runs
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless it is being fed what it can only swallow."""
        if self.forget():
            return
        head = NO_HEAD
        # A request begins with these bytes, and no answer is due before its own.
        first = not self.begun and not self.flow.write_paused and not self.answering()
        if first:
            head = parted(data)
            refusal = self.gate.refusal(data, head, self.number, self._address)
            if refusal is not None:
                self._turn_away(refusal)
                return
            self._first = head
        try:
            if rest := feed(self, tell_seen(self, data, head), first):
                self._unparsed.hold(rest)
            if self._patience.awaited == "body" and not self.answering():
                self.throw_away(len(data) - len(rest))
        except (HttpParserError, HeadersTooLarge, MemoryError) as error:
            self._refuse(cause_of(error))
        idle = self._patience.awaited is None and self.leaving is None and not self.answering()
        if idle and self.head_size.untold and self.timeout_keep_alive_task is not None:
            return  # empty lines, with which nobody keeps a connection open
        self._unset_keepalive_if_required()
        if idle:
            self.await_next()  # these bytes were the rest of a request that has its answer

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        if not self.declining:
            self._expect("headers")
        self.head_size.begin()
        self.begun, self.thrown = True, 0
        ours = {ARRIVED: self._patience.arrived, CONNECTION: self.number, HEAD: self._first}
        ours |= {GONE: self._gone, REST: self.rest, OUTLAST: self.outlast}
        self.scope |= ours  # type: ignore[typeddict-item]
        self._first = NO_HEAD  # another request in the same bytes did not begin with them

    def on_url(self, url: bytes) -> None:
        """A part of the request's address."""
        self.head_size.tell(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers are counted and otherwise ignored."""
        self.head_size.tell_field(len(name) + len(value) + FIELD_BYTES)
        if self._patience.awaited == "headers":
            # White space around it is no part of a value (RFC 9112, section 5); the parser leaves some.
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """The body follows."""
        self.head_size.tell(len(self.parser.get_method()) + LINE_BYTES)
        if parsed := not isinstance(self.parser, Seen):
            accept_head(self)
            if self.declining:
                return
        self.body_left = next((int(v) for name, v in self.headers if name == b"content-length"), 0)
        self.length = self.body_left
        # That refuses an address which is none: then nobody is to answer.
        super().on_headers_complete()
        self._patience.awaited = "body"
        if parsed:
            self.heads.remember(self.scope[HEAD], self.url, self.headers)  # type: ignore[literal-required]

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self.head_size.forget_untold()
        self.pieces += 1
        self.body_left -= len(body)
        # uvicorn's own asks the parser each time for what accept_head has settled; pieces may be of a byte.
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.body += body
            cycle.message_event.set()
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self.declining:
            return
        self.head_size.end()
        self._patience.awaited, self.begun = None, False
        super().on_message_complete()
        self.end_with_body()
        if not self.pipeline:
            # A transport that is not read from does not tell when the client leaves.
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """The answer is out; what is left of a body that it did not need is not even parsed."""
        if self._unparsed:
            # Before the next request is begun, whose body may be in it.
            self.loop.call_soon(self._unparsed.go_on)
        super().on_response_complete()
        if self.last is not None and not self.answering() and not self.transport.is_closing():
            self._leave(self.last)
        if self._patience.awaited == "body" and not self.answering():
            self._unset_keepalive_if_required()  # until the rest has come
            if self.body_left >= SINK_BYTES and not self.transport.is_closing():
                self._incoming = Incoming(self, self.body_left, self.lanes)

    async def rest(self, wanted: Wanted) -> memoryview:
        """Receive the rest of the body that is under way; see `Incoming`."""
        left, self.body_left = self.body_left, 0
        self._incoming = Incoming(self, left, self.lanes, wanted)
        return await self._incoming.whole()

    def body_received(self) -> None:
        """Go on behind a body that the parser has not seen, with a parser that does not miss it."""
        if not (self._turned_away or self.ends):
            self.parser, self.bypassed = HttpRequestParser(self), False
            self.on_message_complete()
        self._incoming, self._turned_away, self._patience.awaited = None, False, None
        if not self.end_with_body() and not self.answering():
            self.await_next()

    def _turn_away(self, refusal: Refusal) -> None:
        """Answer a request that is not so much as parsed; what is to come of its body is nobody's."""
        self.transport.write(refusal.answer)
        self.server_state.total_requests += 1
        if refusal.left:
            self._unset_keepalive_if_required()
            self._turned_away, self.ends = True, refusal.last
            self._expect("body")
            self._incoming = Incoming(self, refusal.left, self.lanes)
        else:
            self._patience.awaited = None
            self.idle_again()

    def expire(self, now: float, lost: float = 0.0) -> None:
        """End the connection if the client has been too slow to send, or to take its answer.

        Args:
            now: on the monotonic clock. lost: seconds of it in which this process was suspended.
        """
        waits = self._incoming is not None and not (self._incoming.begun or self.ends)
        unsent, held = unsent_bytes(self.transport), waits or bool(self.pipeline)
        late = self._patience.overdue(now, lost, unsent, held=held)
        if late == "answer":
            self.telemetry.connection_refused("answer-not-taken")
            self.transport.abort()
        elif late == "headers" and not self.head_size.begun:
            if not self.has_come():
                self.transport.close()  # it was opened and never used; nobody waits for an answer
        elif late == "body" and not self.answering():
            self.transport.close()  # it has its answer, and sends a body that nobody wants
        elif late is not None:
            self._refuse(RequestTimeout(late, self._patience.limit_s(late)))

    def _expect(self, part: Part) -> None:
        self._patience.expect(part, monotonic(), self._unparsed.came)

    def _refuse(self, error: ServiceError | MemoryError) -> None:
        """Answer for a request that never comes to its end, and hang up."""
        if self.leaving is not None:
            return
        record = story(self, self._patience.since)
        refusal = problem(error, record.request_id)
        awaited, self._patience.awaited = self._patience.awaited, None
        self._unparsed.clear()
        if waits := awaited == "body" and bool(self.pipeline):
            self.pipeline.popleft()  # it is behind others, and is as if it had never begun
            self.cycle = self.pipeline[0][0] if self.pipeline else self.current  # type: ignore[assignment]
        owed = self.answering() and (waits or awaited != "body")
        answered = self.cycle.response_started if self.answering() else awaited == "body"
        if answered and not owed:
            self.telemetry.connection_refused(refusal.slug)
            self.transport.close()
            return
        more = self.server_state.default_headers + self.origins.headers(record.headers)
        last = last_answer(refusal, record, more)
        if owed:
            # The requests before it have theirs first.
            self.last = last
            self.flow.pause_reading()
        else:
            self._leave(last)

    def _leave(self, last: Last) -> None:
        """Hang up once the client has: it may still be sending, and would never see the refusal."""
        self.transport.write(last.answer)
        self.telemetry.request_done(last.record)
        if self.answering():
            self.cycle.scope[ANSWERED] = True  # type: ignore[literal-required]
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self._incoming is not None:
                self._incoming.give_up()
        end = self.transport.close if self._place.crowded else self.hang_up
        end()


def bounded(
    settings: Settings, telemetry: Telemetry, gate: Gate, access: Access
) -> type[Connection]:
    """The connection class of a server, since uvicorn makes each connection with arguments of its own."""
    given = {"settings": settings, "telemetry": telemetry, "gate": gate, "access": access}
    made = {"heads": Heads(), "places": Places(settings), "lanes": Lanes(), "turns": Turns()}
    rest = {"origins": Origins(settings.cors_origins), "few": gate.few, "starts": gate.starts}
    return type("BoundedConnection", (Connection,), given | made | rest)
