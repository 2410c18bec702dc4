"""The metrics of a service under fire."""

from __future__ import annotations

import asyncio

from benchmarks.stress.client import ask
from benchmarks.stress.service import Service
from tests import metrics


async def metric_at(port: int, series: str) -> float:
    """A series of the service at a port."""
    return metrics.value((await ask(port, "/metrics", method="GET")).body.decode(), series)


def metric(service: Service, series: str) -> float:
    """A series of a service, asked from outside an event loop."""
    return asyncio.run(metric_at(service.port, series))
