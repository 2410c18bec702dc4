"""`python -m benchmarks.soak`: mixed traffic with faults, for long, and what the service holds.

After the warm-up a line is fitted to each thing that is held. The run fails if one of them grows by
more than its allowance between the ends of that line, or if an answer was wrong or missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.harm import HARMS
from benchmarks.stress.service import Service, running
from benchmarks.stress.traffic import recorded

CLIENTS = 8
SAMPLE_S = 2.0
"""How often it is looked at what is held: more often in a short run, so that there is a line to fit."""

LEAST_SAMPLES = 20
"""Of a run, however short."""

FAULT_S = 5.0
"""How often something is harmed: seldom enough for the service to come to itself in between."""

WARM_UP = 0.3
"""Part of the run that is left out: caches fill, and every kind of fault happens for the first time."""

ALLOWED = {"memory": 24 << 20, "rss": 16 << 20, "threads": 4, "files": 8, "mappings": 6}
"""Growth over the rest of the run that may be chance: a worker is new, or has not met its work yet."""


async def soak(
    service: Service, seconds: float, draw: random.Random
) -> tuple[Account, list[dict[str, float]]]:
    """Load a service, harm it now and then, and look at it all the while."""
    samples: list[dict[str, float]] = []
    crowd = Crowd(service.port, recorded())
    started = time.monotonic()

    async def watch() -> None:
        while True:
            await asyncio.sleep(min(SAMPLE_S, seconds / LEAST_SAMPLES))
            passed = time.monotonic() - started
            samples.append({"seconds": passed, **asdict(service.held())})
            if len(samples) % 15 == 0:
                print(
                    f"{passed:6.0f} of {seconds:.0f} s: {crowd.account.right} right, "
                    f"{samples[-1]['memory'] / 1e6:.0f} MB, {samples[-1]['files']:.0f} files",
                    flush=True,
                )

    async def harm() -> None:
        while True:
            await asyncio.sleep(min(FAULT_S, seconds / 4))
            await HARMS[draw.choice(sorted(HARMS))](service, draw)

    others = [asyncio.create_task(watch()), asyncio.create_task(harm())]
    try:
        return await crowd.go_on(CLIENTS, seconds), samples
    finally:
        for task in others:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task  # what it failed at is a failure of the run


def growth(samples: list[dict[str, float]], name: str) -> float:
    """How much a line through the samples after the warm-up rises from its start to its end."""
    kept = samples[int(len(samples) * WARM_UP) :]
    at = np.array([sample["seconds"] for sample in kept])
    slope = np.polyfit(at, np.array([sample[name] for sample in kept]), 1)[0]
    return float(slope * (at[-1] - at[0]))


def main() -> int:
    """Run for the minutes asked for; returns 0 if nothing grew and every answer was right."""
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="where the report goes")
    given = parser.parse_args()
    with running("--workers", str(given.workers)) as service:
        draw = random.Random(given.seed)
        account, samples = asyncio.run(soak(service, 60 * given.minutes, draw))
    rises = {name: growth(samples, name) for name in ALLOWED}
    failed = [name for name, rise in rises.items() if rise > ALLOWED[name]]
    report: dict[str, Any] = {
        "minutes": given.minutes,
        "right": account.right,
        "not right": account.asked - account.right,
        "refused": {f"{status} {slug}": n for (status, slug), n in account.refused.items()},
        "slowest_s": account.slowest,
        "growth": rises,
        "allowed": ALLOWED,
        "grew": failed,
    }
    print(json.dumps(report, indent=2))
    if given.json:
        given.json.write_text(json.dumps({**report, "samples": samples}) + "\n")
    return 1 if failed or not account.only_right() else 0


if __name__ == "__main__":
    sys.exit(main())
