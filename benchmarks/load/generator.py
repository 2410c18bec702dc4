"""The generator's process: ``python -m benchmarks.load.generator``.

Reads rounds from standard input, one JSON list of loads a line, runs the loads of a round side by
side, and writes what came of each on one line. Exceptions end it.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import sys
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np
import uvloop

import engine
from benchmarks.load.loads import Closed, Open, Spec, make
from benchmarks.load.results import COLUMNS


async def run_round(specs: list[Spec]) -> list[dict[str, Any]]:
    """Run loads side by side."""
    loop = asyncio.get_running_loop()
    failures: list[BaseException] = []
    broken = asyncio.Event()

    def failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        failures.append(context.get("exception") or RuntimeError(context["message"]))
        broken.set()

    loop.set_exception_handler(failed)
    loads = [make(spec) for spec in specs]
    for load in loads:
        await load.prepare()
    start = perf_counter()
    for load in loads:
        load.begin(start)
    runs = [asyncio.create_task(load.run()) for load in loads]
    watch = asyncio.create_task(broken.wait())
    everything = asyncio.ensure_future(_all(runs))
    await asyncio.wait([everything, watch], return_when=asyncio.FIRST_COMPLETED)
    if failures:
        raise failures[0]
    watch.cancel()
    await everything
    return [report(load) for load in loads]


async def _all(runs: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*runs)


def report(load: Closed | Open) -> dict[str, Any]:
    table = np.array(
        [[getattr(answer, name) for name in COLUMNS] for answer in load.answers], np.float64
    )
    return {
        "spec": asdict(load.spec),
        "answers": base64.b64encode(table.tobytes()).decode(),
        "batches": load.checker.batches,
        "retry_after": load.refused_after,
    }


def main() -> None:
    """Serve rounds until standard input ends."""
    engine.set_threads(1)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            specs = [Spec(**fields) for fields in json.loads(line)]
            gc.collect()
            gc.disable()
            print(json.dumps(runner.run(run_round(specs))), flush=True)
            gc.enable()


if __name__ == "__main__":
    main()
