"""The metrics, which add up the stories of all requests, and the log line of each.

Everything is counted in the server process; workers report through the dispatcher. Labels come
from closed sets (the catalogue, the actions, the problem table), so that no client can make series.
"""

from __future__ import annotations

import logging
from functools import cache

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
from app.record import Record

EXPOSITION_TYPE = CONTENT_TYPE_LATEST
"""Media type of the metrics' text."""

_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


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
            logs.request(record.fields())

    def turned_away(self, operation: str, action: str, requests: int) -> None:
        """Count requests that were refused for want of room before they were read."""
        self._requests_of(operation, action, 503).inc(requests)
        self._rejects.labels("queue-full").inc(requests)

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
