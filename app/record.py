"""The story of one request, from its first byte to its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

STAGES = ("decode", "queue", "compute", "encode")
"""What a request goes through, in order."""

_TIMES = ", ".join(f"{name};dur=%.3f" for name in STAGES)

REFUSED = 400
"""The least status of an answer that is a refusal."""


@dataclass(slots=True)
class Record:
    """The story of one request, filled in on its way.

    Attributes:
        headers: by lower-case name; the values of a repeated one joined by commas.
        client: the address; empty where it is not known.
        started: arrival of the first byte, on the monotonic clock.
        operation, action: from the catalogue; `unknown` where the path names no such thing, `none`
            where it names nothing.
        stages: seconds spent in each of `STAGES` so far.
        status: of the answer; 0 until it begins.
        problem: slug of the problem it was answered with.
        unread: whether a part of the body may still be on its way.
        bytes_in, bytes_out: of the bodies of request and answer, as far as they have come or gone.
        batch_requests, batch_rows: requests and samples of the call that it shared; 0 before there is one.
    """

    request_id: str
    headers: dict[bytes, bytes]
    started: float
    method: str = ""
    path: str = ""
    client: str = ""
    operation: str = "none"
    action: str = "none"
    status: int = 0
    problem: str = ""
    unread: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    batch_requests: int = 0
    batch_rows: int = 0
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def body_length(self) -> int:
        """Bytes of the body as its head announces them; 0 where it does not, as for one in chunks."""
        return int(self.headers.get(b"content-length", b"0"))

    def server_timing(self) -> str:
        """The `Server-Timing` header: every stage in milliseconds, and for a refusal all of its time."""
        of = self.stages.get
        times = _TIMES % tuple([of(name, 0.0) * 1e3 for name in STAGES])
        if self.status < REFUSED:
            return times
        return f"{times}, total;dur={(monotonic() - self.started) * 1e3:.3f}"

    def common_headers(self) -> list[tuple[bytes, bytes]]:
        """What every answer has, whatever it answers."""
        return [
            (b"server-timing", self.server_timing().encode()),
            (b"x-request-id", self.request_id.encode()),
            (b"x-content-type-options", b"nosniff"),
        ]

    def fields(self) -> dict[str, object]:
        """What the log says of it."""
        line: dict[str, object] = {
            "request_id": self.request_id,
            "client": self.client,
            "method": self.method,
            "path": self.path[:200],
            "status": self.status,
            "ms": round((monotonic() - self.started) * 1e3, 3),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
        }
        if self.problem:
            line["problem"] = self.problem
        if self.operation != "none":
            line |= {"operation": self.operation, "action": self.action}
        for name, seconds in self.stages.items():
            line[f"{name}_ms"] = round(seconds * 1e3, 3)
        if self.batch_requests:
            line |= {"batch_requests": self.batch_requests, "batch_rows": self.batch_rows}
        return line
