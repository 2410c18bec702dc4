"""`python -m benchmarks.chaos`: a service under load, harmed at random, and every answer judged.

Workers are killed, suspended and starved, clients leave, dawdle and do not listen, and from time to
time the server itself is killed and started again. It fails if an answer is wrong, a request is
lost while the server lives, or a process is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.harm import HARMS
from benchmarks.stress.service import Service, alive, running, until
from benchmarks.stress.traffic import recorded

ROUND_S = 20.0
"""A server lives so long before it is killed outright."""

CLIENTS = 16


async def round_of(
    service: Service, seconds: float, draw: random.Random
) -> tuple[Account, Counter[str]]:
    """Load and harm one server for so long."""
    done: Counter[str] = Counter()

    async def harming() -> None:
        while True:
            await asyncio.sleep(draw.uniform(0.3, 1.5))
            name = draw.choice(sorted(HARMS))
            harm: Callable[[Service, random.Random], Awaitable[None]] = HARMS[name]
            await harm(service, draw)
            done[name] += 1

    task = asyncio.create_task(harming())
    try:
        return await Crowd(service.port, recorded()).go_on(CLIENTS, seconds), done
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task  # a harm that could not be done is not to look like one that was borne


def _await_end(pids: list[int]) -> None:
    """Wait for the workers of a killed server, which must not outlive it."""
    until(lambda: not any(map(alive, pids)), 5.0)


def main() -> int:
    """Run for the minutes asked for; returns 0 if every promise was kept."""
    parser = argparse.ArgumentParser(prog="benchmarks.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    end = time.monotonic() + 60 * given.minutes
    right, failed, refused, harms = 0, 0, Counter[tuple[int, str]](), Counter[str]()
    while (left := end - time.monotonic()) > 0:
        with running("--workers", str(given.workers)) as service:
            account, done = asyncio.run(round_of(service, min(ROUND_S, left), draw))
            workers = service.kill()
        _await_end(workers)
        right += account.right
        refused += account.refused
        harms += done
        failed += account.wrong.total() + account.missing.total()
        print(
            f"{left:5.0f} s left: {account.right} right, refused {dict(account.refused)}, "
            f"wrong {dict(account.wrong)}, missing {dict(account.missing)}, "
            f"slowest {account.slowest:.2f} s",
            flush=True,
        )
    failed += refused.total()
    print(f"{right} right, {failed} not; refused {dict(refused)}; harms {dict(harms)}")
    return 1 if failed or not right or not harms else 0


if __name__ == "__main__":
    sys.exit(main())
