"""What happened: the story of each request, and the metrics that add them up.

Everything is counted in the server process; workers report through the dispatcher. Labels come
from closed sets (the catalogue, the actions, the problem table), so that no client can make series.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cache
from time import monotonic

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from app import __version__, logs

EXPOSITION_TYPE = CONTENT_TYPE_LATEST
"""Media type of the metrics' text."""

STAGES = ("decode", "queue", "compute", "encode")
_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(slots=True)
class Record:
    """The story of one request, filled in on its way.

    Attributes:
        headers: by lower-case name; the values of a repeated one joined by commas.
        started: arrival of the first byte, on the monotonic clock.
        operation, action: from the catalogue; `unknown` where the path names no such thing, `none`
            where it names nothing.
        stages: seconds spent in each of `STAGES` so far.
        problem: slug of the problem it was answered with.
        unread: whether a part of the body may still be on its way.
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

    def server_timing(self) -> str:
        """The `Server-Timing` header: every stage in milliseconds."""
        stages = self.stages
        return ", ".join(f"{name};dur={stages.get(name, 0.0) * 1e3:.3f}" for name in STAGES)

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


class Telemetry:
    """The metrics of one server, and the dispatcher's observer."""

    def __init__(self) -> None:
        # The creation time of every series would double the answer and tell nobody anything.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        where = ["operation", "action"]
        self._requests = Counter(
            "convoke_requests", "Requests answered.", [*where, "status"], registry=registry
        )
        self._stages = Histogram(
            "convoke_stage_seconds",
            "Time that requests spent in each stage.",
            [*where, "stage"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._batch_requests = Histogram(
            "convoke_batch_requests",
            "Requests that shared a call.",
            where,
            buckets=_COUNTS,
            registry=registry,
        )
        self._batch_rows = Histogram(
            "convoke_batch_rows",
            "Samples that shared a call.",
            where,
            buckets=_COUNTS,
            registry=registry,
        )
        self._batch_seconds = Histogram(
            "convoke_batch_seconds",
            "Time to compute a call.",
            where,
            buckets=_SECONDS,
            registry=registry,
        )
        self._rejects = Counter(
            "convoke_rejects", "Requests refused, by problem.", ["reason"], registry=registry
        )
        self._dropped = Counter(
            "convoke_dropped",
            "Requests given up after they were accepted.",
            ["reason"],
            registry=registry,
        )
        self._restarts = Counter(
            "convoke_worker_restarts", "Workers replaced.", ["reason"], registry=registry
        )
        self._bytes_in = Counter(
            "convoke_request_bytes", "Bytes of request bodies.", registry=registry
        )
        self._bytes_out = Counter(
            "convoke_response_bytes", "Bytes of response bodies.", registry=registry
        )
        self._queue_requests = Gauge(
            "convoke_queue_requests", "Requests waiting for a worker.", registry=registry
        )
        self._queue_bytes = Gauge(
            "convoke_queue_bytes",
            "Bytes of tensors of the requests waiting for a worker.",
            registry=registry,
        )
        self.in_flight = Gauge(
            "convoke_requests_in_flight", "Requests being answered.", registry=registry
        )
        self.held_bytes = Gauge(
            "convoke_held_bytes",
            "Bytes of bodies held, of requests and answers.",
            registry=registry,
        )
        self.log_dropped = Gauge(
            "convoke_log_lines_dropped", "Log lines that nobody took.", registry=registry
        )
        Gauge("convoke_info", "The version.", ["version"], registry=registry).labels(
            __version__
        ).set(1)
        # Finding a series by its labels costs more than counting; the labels come from closed sets.
        self._requests_of = cache(self._requests.labels)
        self._seconds_of = cache(self._stages.labels)

    def request_done(self, record: Record) -> None:
        """Count and log a request that has been answered, or whose client has gone."""
        operation, action = record.operation, record.action
        self._requests_of(operation, action, record.status).inc()
        for stage, seconds in record.stages.items():
            self._seconds_of(operation, action, stage).observe(seconds)
        if record.bytes_in:
            self._bytes_in.inc(record.bytes_in)
        self._bytes_out.inc(record.bytes_out)
        if record.problem:
            self._rejects.labels(record.problem).inc()
        if logs.requests.isEnabledFor(logging.INFO):
            logs.requests.info("request", extra={"fields": record.fields()})

    def connection_refused(self, reason: str) -> None:
        """A connection was refused or ended for what came over it, before it was a request."""
        self._rejects.labels(reason).inc()

    def batch_done(
        self, operation: str, action: str, requests: int, rows: int, compute_s: float
    ) -> None:
        """A call has been computed (the dispatcher's report)."""
        self._batch_requests.labels(operation, action).observe(requests)
        self._batch_rows.labels(operation, action).observe(rows)
        self._batch_seconds.labels(operation, action).observe(compute_s)

    def worker_restarted(self, reason: str) -> None:
        """A worker has been replaced (the dispatcher's report)."""
        self._restarts.labels(reason).inc()

    def queue_changed(self, depth: int, size: int) -> None:
        """Requests and bytes that wait (the dispatcher's report)."""
        self._queue_requests.set(depth)
        self._queue_bytes.set(size)

    def dropped(self, reason: str) -> None:
        """A request was given up: `cancelled` or `deadline` (the dispatcher's report)."""
        self._dropped.labels(reason).inc()

    def exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)
