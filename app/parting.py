"""How a connection ends whose client may still be sending: once it can have read why.

Closed while bytes are unread, a connection is reset, and what the client has not read yet is lost to it.
So our side is closed first, and what still comes is read and forgotten for a while (RFC 9112, section 9.6).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.counted import CALLER, Counted
from app.edge import LINGER_S
from app.leftover import MOST_REST
from app.starts import Starts
from app.unfinished import Last
from app.unparsed import Turns

BRIEFLY_S = 0.5
"""For how long what comes is read where the server ends, which waits a second for connections at most."""


class Parting(Counted):
    """The part of a connection that hangs up.

    Attributes:
        turns: for those who have more to read, or to parse.
        starts: tell when a request begins.
        current: the request that is being answered, or was last.
        ends: the connection ends once the body has come that is coming in, which was refused.
        thrown: bytes of the request that is coming in that came after its answer.
        last: what is told once the requests before it have their answers, and then ends the connection.
        leaving: set once our side is closed.
    """

    turns: Turns
    starts: Starts
    current: RequestResponseCycle | None = None
    ends = False
    thrown = 0
    last: Last | None = None
    leaving: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        if self.leaving is not None:
            self.leaving.cancel()
        super().connection_lost(exc)

    def forget(self) -> bool:
        """Bytes have come; whether they are forgotten, as nothing that comes is looked at any more."""
        if self.transport.is_closing():
            return True
        if self.leaving is not None:
            self.take_turns()
        return self.last is not None or self.leaving is not None

    def outlast(self) -> None:
        """End not with the answer that is under way, which says so, but once its body has come."""
        cycle = self.current
        if cycle is not None and cycle is self.cycle and cycle.more_body:
            cycle.keep_alive = self.ends = True

    def end_with_body(self) -> bool:
        """A body has come; whether the connection ends, with it or with the answer that is under way."""
        if self.ends and self.answering():
            self.cycle.keep_alive = False
        elif self.ends and self.leaving is None:
            self.hang_up()
        return self.ends

    def throw_away(self, nbytes: int) -> None:
        """So many bytes came of a body that nobody wants; of one in chunks nothing tells when it ends."""
        self.thrown += nbytes
        if self.thrown > MOST_REST:
            self.transport.close()  # the client has its answer
        else:
            self.take_turns()

    def take_turns(self) -> None:
        """Read on in turn: the loop takes up to 8 MiB of what comes quickly before it turns to others."""
        self.flow.pause_reading()
        self.turns.enter(self.flow.resume_reading)

    def hang_up(self, seconds: float = LINGER_S) -> None:
        """Close our side, and the connection once the client has done the same, or so long after."""
        if self.leaving is None:
            self._unset_keepalive_if_required()
            if self.cycle is not None:
                self.cycle.waiting_for_100_continue = False  # nothing more is written, nor that
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.leaving.cancel()
        self.leaving = self.loop.call_later(seconds, self.transport.close)

    def shutdown(self) -> None:
        """The server ends, and does not wait for what nobody wants."""
        if self.leaving is not None or (self.ends and not self.answering()):
            self.hang_up(BRIEFLY_S)
        else:
            super().shutdown()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.leaving is not None:
            return  # there is nobody to answer
        self.current = cycle
        scope = cycle.scope
        caller = scope[CALLER]  # type: ignore[literal-required]
        if self.starts.may(caller):
            super()._start_asgi_task(cycle, app)
        else:
            start = partial(super()._start_asgi_task, cycle, app)
            asks = scope["method"] == "POST" and scope["path"].endswith(("/forward", "/backward"))
            self.starts.wait(caller, start, place=asks)
