"""How long a client may take. Pure: times are seconds on any one clock, given by the caller."""

from __future__ import annotations

from typing import Literal

from app.settings import Settings

Part = Literal["headers", "body"]


class Patience:
    """What a connection waits for, and since when.

    Attributes:
        awaited: the part of a request that is to come; None where none is.
        since: when the request that is coming in began, or the connection; time that does not count
            against the client is left out.
        arrived: when its first byte came, which may have waited to be parsed.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.awaited: Part | None = None
        self.since = self.arrived = 0.0
        self._unsent = 0  # bytes of answers that the client had not taken when it was asked last
        self._taken = 0.0  # when it last took some

    def expect(self, part: Part, now: float, came: float | None = None) -> None:
        """A part of a request is to come, for which the time runs from now on.

        Args:
            came: when its first byte did, if it has waited for us; the client waits since then.
        """
        self.awaited = part
        self.since = now
        self.arrived = now if came is None else came

    def overdue(
        self, now: float, lost: float, unsent: int, *, held: bool
    ) -> Part | Literal["answer"] | None:
        """What has taken too long; to be asked again and again, about once a second.

        Args:
            lost: seconds in which we did not run; they do not count against the client.
            unsent: bytes of answers that the client has not taken.
            held: nothing is read, since requests wait for the answers before them, or a body for others.
        """
        limits = self._settings
        self.since = min(self.since + lost, now)
        self._taken = min(self._taken + lost, now)
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._taken = unsent, now
        if now - self._taken > limits.answer_timeout_s:
            return "answer"
        if held:
            self.since = now
        late = self.awaited is not None and now - self.since > self.limit_s(self.awaited)
        return self.awaited if late else None

    def limit_s(self, part: Part) -> float:
        """How long a part of a request may take to come, in seconds."""
        limits = self._settings
        return limits.header_timeout_s if part == "headers" else limits.body_timeout_s
