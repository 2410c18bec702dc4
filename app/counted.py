"""Which connections have a small request under way, and whose it is, told to `Few`."""

from __future__ import annotations

import asyncio

from app.access import Access
from app.addresses import network_of
from app.few import Few
from app.keepalive import KeepAlive

CALLER = "convoke.caller"
"""Key, in a scope, of whose the request is: the name of its key, else the network that it comes from."""


class Counted(KeepAlive):
    """The part of a connection that tells whether it is one of a few.

    It counts while a request is whole and not answered: who leaves one unfinished, or does not take its
    answers, keeps no others from being answered at once.

    Attributes:
        number: of its own for each connection.
        length: of the body of the request that is coming in.
        network: that it comes from.
    """

    access: Access
    few: Few
    number: int
    length = 0
    network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The connection is open."""
        super().connection_made(transport)
        if self.client:
            self.network = network_of(self.client[0])

    def on_headers_complete(self) -> None:
        """They tell whose the request is: what a proxy passes on comes from one address."""
        caller = self.access.caller(self.headers) or self.network
        self.scope[CALLER] = caller  # type: ignore[literal-required]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self.answering() and not self.flow.write_paused:
            caller = self.scope[CALLER]  # type: ignore[literal-required]
            self.few.enter(self.number, self.length, caller)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is out; the next request may have been sent ahead."""
        if not self.pipeline or self.pipeline[-1][0].more_body:
            self.few.leave(self.number)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not take its answers."""
        self.few.leave(self.number)
        super().pause_writing()
