"""Every setting arrives where it is held."""

from __future__ import annotations

import os

import pytest

from app.admission import QueueLimits
from app.batcher import BatchLimits
from app.cost import CostLimits
from app.main import (
    SMALL_WORK,
    awake,
    cost_limits,
    desk_limits,
    dispatch_limits,
    quota_limits,
)
from app.options import load
from app.quotas import QuotaLimits
from app.scribe.desk import DeskLimits
from app.settings import Settings
from app.staffing import DispatchLimits
from app.wire import DecodeLimits


def settled(**values: object) -> Settings:
    return load({f"CONVOKE_{name.upper()}": str(value) for name, value in values.items()})


def test_the_cost_of_a_request() -> None:
    settings = settled(
        max_output_bytes=101,
        max_workspace_bytes=102,
        max_flops=103,
        max_tensor_bytes=104,
        max_steps=105,
    )
    assert cost_limits(settings) == CostLimits(
        output_bytes=101, workspace_bytes=102, flops=103, tensor_bytes=104, steps=105
    )


def test_the_queue_and_the_batches() -> None:
    given = {
        "workers": 3,
        "max_queue_requests": 11,
        "max_queue_bytes": 12,
        "max_batch_requests": 13,
        "max_batch_rows": 14,
        "max_batch_bytes": 15,
        "max_compute_s": 16.5,
        "max_body_bytes": 17,
    }
    cost = cost_limits(settled(max_flops=1))

    def limits(requests: int, workers: int = 3) -> DispatchLimits:
        return DispatchLimits(
            workers=workers,
            cost=cost,
            queue=QueueLimits(requests=11, nbytes=12),
            batch=BatchLimits(requests=requests, rows=14, nbytes=15, small=SMALL_WORK),
            max_compute_s=16.5,
            at_once=workers > 0,
            body_bytes=17,
        )

    assert dispatch_limits(settled(**given), cost) == limits(13)
    assert dispatch_limits(settled(**given, batching="false"), cost) == limits(1)
    without = given | {"workers": 0}
    assert dispatch_limits(settled(**without), cost) == limits(13, workers=0)


def test_large_json() -> None:
    given = {
        "max_tensor_rank": 5,
        "max_json_numbers": 21,
        "max_json_waiting_bytes": 22,
        "max_compute_s": 23.5,
        "max_body_bytes": 30,
    }
    for json_bytes, body_bytes in ((24, 24), (40, 30)):
        assert desk_limits(settled(**given, max_json_bytes=json_bytes)) == DeskLimits(
            decode=DecodeLimits(max_rank=5, max_elements=21),
            body_bytes=body_bytes,
            waiting_bytes=22,
            work_s=23.5,
        )


def test_callers() -> None:
    settings = settled(max_caller_rate=1.5, max_caller_burst=31, max_caller_requests=32)
    assert quota_limits(settings) == QuotaLimits(rate=1.5, burst=31, at_once=32)


def test_processors_are_kept_awake_where_that_is_wanted_and_most_of_them_are_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert awake(settled(workers=2)) is None
    assert awake(settled(workers=3)) is not None
    assert awake(settled(workers=3, keep_awake="false")) is None
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert awake(settled(workers=0)) is not None
