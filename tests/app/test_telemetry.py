"""The metrics answer what they are for, and their labels come from closed sets."""

from __future__ import annotations

import pytest

import engine
from app.record import STAGES, Record
from app.telemetry import Telemetry
from tests import metrics


def record(**given: object) -> Record:
    fields = {"request_id": "r", "headers": {}, "started": 0.0, "operation": "conv"}
    fields |= {"action": "forward", "status": 200}
    return Record(**(fields | given))  # type: ignore[arg-type]


def value(telemetry: Telemetry, name: str, **labels: str) -> float:
    where = ",".join(f'{label}="{labels[label]}"' for label in labels)
    return metrics.value(telemetry.exposition().decode(), f"{name}{{{where}}}" if where else name)


_ROWS = {"16.0": 0, "32.0": 1, "+Inf": 1}


def test_requests_are_counted_by_operation_action_and_status() -> None:
    telemetry = Telemetry()
    for status in (200, 200, 422):
        telemetry.request_done(record(status=status))
    where = {"action": "forward", "operation": "conv"}
    assert value(telemetry, "convoke_requests_total", **where, status="200") == 2
    assert value(telemetry, "convoke_requests_total", **where, status="422") == 1


def test_each_stage_has_its_times() -> None:
    telemetry = Telemetry()
    telemetry.request_done(record(stages=dict.fromkeys(STAGES, 0.25)))
    telemetry.request_done(record(stages={"decode": 0.5}))
    where = {"action": "forward", "operation": "conv"}
    for stage in STAGES:
        total = value(telemetry, "convoke_stage_seconds_sum", **where, stage=stage)
        assert total == (0.75 if stage == "decode" else 0.25)


def test_refusals_are_counted_by_reason() -> None:
    telemetry = Telemetry()
    telemetry.request_done(record(status=503, problem="queue-full"))
    assert value(telemetry, "convoke_rejects_total", reason="queue-full") == 1


def test_bytes_are_counted() -> None:
    telemetry = Telemetry()
    telemetry.request_done(record(bytes_in=10, bytes_out=7))
    assert value(telemetry, "convoke_request_bytes_total") == 10
    assert value(telemetry, "convoke_response_bytes_total") == 7


def test_the_dispatcher_reports_batches_and_workers() -> None:
    telemetry = Telemetry()
    telemetry.batch_done("conv", "backward", 3, 24, 0.5)
    telemetry.worker_restarted("crashed")
    telemetry.dropped("deadline")
    where = {"action": "backward", "operation": "conv"}
    assert value(telemetry, "convoke_batch_requests_sum", **where) == 3
    assert value(telemetry, "convoke_batch_rows_sum", **where) == 24
    assert value(telemetry, "convoke_batch_seconds_sum", **where) == 0.5
    rows = {le: value(telemetry, "convoke_batch_rows_bucket", **where, le=le) for le in _ROWS}
    assert rows == _ROWS
    assert value(telemetry, "convoke_worker_restarts_total", reason="crashed") == 1
    assert value(telemetry, "convoke_dropped_total", reason="deadline") == 1


def test_dropped_log_lines_are_a_counter() -> None:
    text = Telemetry(lambda: 3).exposition().decode()
    assert metrics.value(text, "convoke_log_lines_dropped_total") == 3
    assert "# TYPE convoke_log_lines_dropped_total counter" in text


def test_servers_do_not_share_their_counts() -> None:
    first, second = Telemetry(), Telemetry()
    first.request_done(record())
    where = {"action": "forward", "operation": "conv", "status": "200"}
    assert value(second, "convoke_requests_total", **where) == 0
    assert b'convoke_requests_total{action="forward",operation="conv",status="200"} 1.0' in (
        first.exposition()
    )


def test_the_client_library_writes_few_lines() -> None:
    """Each takes it ten microseconds, in which the event loop stands still."""
    telemetry = Telemetry()
    for operation in engine.operations():
        for action in ("forward", "backward"):
            stages = dict.fromkeys(STAGES, 0.25)
            telemetry.request_done(record(operation=operation, action=action, stages=stages))
            telemetry.batch_done(operation, action, 1, 1, 0.25)
    lines = sum(len(metric.samples) for metric in telemetry.registry.collect())
    assert telemetry.exposition().count(b"_bucket{") > 20 * lines


def test_the_timing_header_is_in_milliseconds() -> None:
    found = record(stages={"decode": 0.0015, "compute": 2}).server_timing()
    assert found == "decode;dur=1.500, queue;dur=0.000, compute;dur=2000.000, encode;dur=0.000"


@pytest.mark.parametrize(("path", "length"), [("/" * 10, 10), ("/" * 1000, 200)])
def test_the_log_keeps_lines_short(path: str, length: int) -> None:
    assert len(str(record(path=path).fields()["path"])) == length
