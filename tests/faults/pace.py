"""How slow this machine is at the moment, so that bounds on time hold where it is slow or busy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.load.servers import ROOT
from benchmarks.stress.crowd import Crowd
from benchmarks.stress.service import Service
from benchmarks.stress.traffic import recorded

IDLE_S = 1.0
"""What an idle machine may add to a time."""

REQUESTS = 20
"""A busy one may add as much as the slowest of some small requests takes, so many times."""


def slack(service: Service) -> Callable[[], float]:
    """What tells the seconds that may be added to a time for want of a processor.

    From requests made now, and from others made when it is asked: a machine may be busy from in between on.
    """

    def slowest() -> float:
        account = asyncio.run(Crowd(service.port, recorded()[:1]).ask(4, 40))
        assert account.only_right(), account
        return account.slowest

    before = slowest()
    return lambda: IDLE_S + REQUESTS * max(before, slowest())


def start_s(size: int) -> float:
    """Seconds that so many processes take together which import the engine, as workers do."""
    started = time.monotonic()
    command = [sys.executable, "-c", "import engine"]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(size)]
    assert [process.wait() for process in processes] == [0] * size
    return time.monotonic() - started
