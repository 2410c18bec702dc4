"""The metrics, which add up the stories of all requests, and the log line of each.

Everything is counted in the server process; workers report through the dispatcher. Labels come
from closed sets (the catalogue, the actions, the problem table), so that no client can make series.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from app import __version__, logs
from app.problems import Problem
from app.record import Record
from app.tally import Histogram

EXPOSITION_TYPE = CONTENT_TYPE_LATEST
"""Media type of the metrics' text."""

_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

_OF_CALLS = (
    ("convoke_batch_requests", "Requests that shared a call.", _COUNTS),
    ("convoke_batch_rows", "Samples that shared a call.", _COUNTS),
    ("convoke_batch_seconds", "Time to compute a call.", _SECONDS),
)
"""What is counted for every call: metric, what it says, and its classes."""


class Telemetry:
    """The metrics of one server, and the dispatcher's observer.

    Args:
        log_lines_dropped: how many there are, asked when the metrics are.
    """

    def __init__(self, log_lines_dropped: Callable[[], int] = lambda: 0) -> None:
        # The creation time of every series would double the answer and tell nobody anything.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._answers = _Answers(log_lines_dropped)
        registry.register(self._answers)
        self._stages = Histogram(
            "convoke_stage_seconds",
            "Time that requests spent in each stage.",
            ("action", "operation", "stage"),
            _SECONDS,
        )
        self._calls = [
            Histogram(name, about, ("action", "operation"), bounds)
            for name, about, bounds in _OF_CALLS
        ]
        self._rejects = Counter(
            "convoke_rejects",
            "Requests refused, by problem, and answers that were not taken.",
            ["reason"],
            registry=registry,
        )
        self._dropped = Counter(
            "convoke_dropped",
            "Requests given up after they were accepted: their caller left, or their deadline passed.",
            ["reason"],
            registry=registry,
        )
        self._restarts = Counter(
            "convoke_worker_restarts",
            "Processes that ended and are replaced: workers, and those that read and write large JSON.",
            ["reason"],
            registry=registry,
        )
        self.queue_requests = Gauge(
            "convoke_queue_requests", "Requests waiting for a worker.", registry=registry
        )
        self.queue_bytes = Gauge(
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
        Gauge("convoke_info", "The version.", ["version"], registry=registry).labels(
            __version__
        ).set(1)

    def request_done(self, record: Record) -> None:
        """Count and log a request that has been answered, or whose client has gone."""
        self._answers.count(record)
        for stage, seconds in record.stages.items():
            self._stages.add((record.action, record.operation, stage), seconds)
        if record.problem:
            self._rejects.labels(record.problem).inc()
        if logs.requests.isEnabledFor(logging.INFO):
            logs.request(record.fields())

    def turned_away(self, operation: str, action: str, refusal: Problem, requests: int) -> None:
        """Count requests that were answered with a problem before they were read."""
        self._answers.add(operation, action, refusal.status, requests)
        self._rejects.labels(refusal.slug).inc(requests)

    def connection_refused(self, reason: str) -> None:
        """A connection was ended without another word, as nothing came over it any more or no HTTP."""
        self._rejects.labels(reason).inc()

    def batch_done(
        self, operation: str, action: str, requests: int, rows: int, compute_s: float
    ) -> None:
        """A call has been computed (the dispatcher's report)."""
        for histogram, value in zip(self._calls, (requests, rows, compute_s), strict=True):
            histogram.add((action, operation), value)

    def worker_restarted(self, reason: str) -> None:
        """A worker has been replaced (the dispatcher's report)."""
        self._restarts.labels(reason).inc()

    def dropped(self, reason: str) -> None:
        """A request was given up: `cancelled` or `deadline` (the dispatcher's report)."""
        self._dropped.labels(reason).inc()

    def exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        histograms = "".join(histogram.text() for histogram in (self._stages, *self._calls))
        return generate_latest(self.registry) + histograms.encode()


class _Answers(Collector):
    """What is counted for every request: sums in dictionaries, made into series when they are asked for.

    A series of the client library takes microseconds to count in, and a request counts in three of them.
    """

    def __init__(self, log_lines_dropped: Callable[[], int]) -> None:
        self._log_lines_dropped = log_lines_dropped
        self._requests: dict[tuple[str, str, int], int] = {}
        self._bytes_in = self._bytes_out = 0

    def count(self, record: Record) -> None:
        """Count a request."""
        self.add(record.operation, record.action, record.status, 1)
        self._bytes_in += record.bytes_in
        self._bytes_out += record.bytes_out

    def add(self, operation: str, action: str, status: int, requests: int) -> None:
        """Count requests that were answered alike."""
        key = operation, action, status
        self._requests[key] = self._requests.get(key, 0) + requests

    def collect(self) -> Iterator[Metric]:
        """The series."""
        labels = ["operation", "action", "status"]
        about = "Requests answered, or given up by their clients (499)."
        answered = CounterMetricFamily("convoke_requests", about, labels=labels)
        for (operation, action, status), count in self._requests.items():
            answered.add_metric([operation, action, str(status)], count)
        yield answered
        yield CounterMetricFamily(
            "convoke_request_bytes",
            "Bytes of request bodies, those of requests refused at their head aside.",
            value=self._bytes_in,
        )
        yield CounterMetricFamily(
            "convoke_response_bytes",
            "Bytes of response bodies, refusals for want of room at a request's head aside.",
            value=self._bytes_out,
        )
        dropped = self._log_lines_dropped()
        yield CounterMetricFamily(
            "convoke_log_lines_dropped", "Log lines that nobody took.", value=dropped
        )
