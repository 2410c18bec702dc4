"""How long a connection is kept on which nothing is asked: uvicorn's timer, set less often, and late."""

from __future__ import annotations

import math

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LAST_READ_S = 0.05
"""How long it is waited, before a time counts as over, for what has come and was not read."""


class KeepAlive(HttpToolsProtocol):
    """The part of a connection that waits for its next request."""

    _idle_since = -math.inf  # when a request was answered that found a timer and left it

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

    def timeout_keep_alive_handler(self, looked: bool = False) -> None:
        """Close an idle connection, unless it was used meanwhile.

        Args:
            looked: nothing came while it was looked once more for a next request.
        """
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._time(left)
        elif looked:
            super().timeout_keep_alive_handler()
        else:
            # After a time in which we did not run, this comes before what lies in the socket.
            self._time(LAST_READ_S, looked=True)

    def _time(self, seconds: float, *, looked: bool = False) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler, looked
        )
