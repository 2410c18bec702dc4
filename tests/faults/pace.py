"""How slow this machine is at the moment, so that bounds on time hold where it is slow or busy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from benchmarks.load.servers import ROOT
from benchmarks.stress.crowd import Crowd
from benchmarks.stress.service import Service
from benchmarks.stress.traffic import recorded

IDLE_S = 1.0
"""What an idle machine may add to a time."""

REQUESTS = 20
"""A busy one may add as much as the slowest of some small requests takes, so many times."""


def slack(service: Service) -> float:
    """Seconds that may be added to a time for want of a processor, from requests made now."""
    account = asyncio.run(Crowd(service.port, recorded()[:1]).ask(4, 40))
    assert account.only_right(), account
    return IDLE_S + REQUESTS * account.slowest


def start_s() -> float:
    """Seconds that a process takes which imports the engine, as workers do."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import engine"], cwd=ROOT, check=True)
    return time.monotonic() - started
