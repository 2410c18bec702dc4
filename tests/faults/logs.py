"""The log of a service under fire."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from benchmarks.stress.client import ask
from benchmarks.stress.service import Service, until


def logged(service: Service) -> str:
    """The log once it tells of all that has been asked: lines are written some time after the answers."""
    last = f"last-{uuid4()}"
    asyncio.run(ask(service.port, "/version", headers={"X-Request-Id": last}, method="GET"))
    until(lambda: last in service.log())
    return service.log()
