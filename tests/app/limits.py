"""Limits that are wide enough for what tests do; each test names those that it is about."""

from __future__ import annotations

from functools import partial

from app.admission import QueueLimits
from app.batcher import BatchLimits
from app.cost import CostLimits
from app.quotas import QuotaLimits
from app.staffing import DispatchLimits
from app.wire import DecodeLimits

cost_limits = partial(
    CostLimits,
    output_bytes=512 << 20,
    workspace_bytes=1 << 30,
    flops=10**12,
    tensor_bytes=768 << 20,
    steps=10**7,
)
queue_limits = partial(QueueLimits, requests=512, nbytes=2 << 30)
batch_limits = partial(BatchLimits, requests=64, rows=1024, nbytes=64 << 20)
quota_limits = partial(QuotaLimits, rate=0.0, burst=1, at_once=0)
decode_limits = partial(DecodeLimits, max_rank=8, max_elements=2**22)
dispatch_limits = partial(
    DispatchLimits,
    cost=cost_limits(),
    queue=queue_limits(),
    batch=batch_limits(),
    max_compute_s=600.0,
)
