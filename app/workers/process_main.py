"""A worker process: ``python -m app.workers.process_main CONTROL ARENA... BERTH... ARENAS THREADS``.

The first arguments are inherited file descriptors, the last two say how many of them are arenas, and how
many threads the engine has.
Where other workers have nothing to do, a task has their threads too; no bit of its results depends on that.
"""

from __future__ import annotations

import sys

from app.early import end_with_server

if __name__ == "__main__":
    # Before anything is imported that takes long: until then it would outlive the server if it is stopped.
    end_with_server(int(sys.argv[1]))

import mmap
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import engine
from app.workers import layouts, protocol
from app.workers.arena import MappedFile, Region
from app.workers.attendant import attend
from app.workers.channel import Message
from app.workers.cpus import threads_of_a_task
from app.workers.task import LONG_TRIP_S

WARM = 128
"""Rows of a product that is too large for BLAS to do without memory of its own."""

Run = Callable[..., dict[str, NDArray[Any]]]


def main(arguments: list[str], run: Run = engine.run) -> None:
    """Serve tasks until the server is gone."""
    control_fd, *fds, count, threads = map(int, arguments)
    engine.operations()  # imports them all, for which the first task would wait otherwise
    _warm_up()
    arenas = [MappedFile(fd) for fd in fds[:count]]
    berths = [MappedFile(fd, mmap.PROT_READ) for fd in fds[count:]]
    most = threads_of_a_task()
    engine.set_wakeful(False)  # the server keeps processors awake, where that is wanted

    def answer(message: Message) -> Message:
        engine.set_threads(min(threads * (1 + message["helpers"]), most))
        arena, size = arenas[message["arena"]], message["size"]
        home = time.perf_counter() + LONG_TRIP_S
        reports: list[Message] = []
        for task in message["tasks"]:
            reports.append(_report(task, arena, size, berths, run))
            # A message has room for one traceback.
            if time.perf_counter() > home or protocol.failed(reports[-1]):
                break
        # The server tells of those who are left again.
        left = len(message["tasks"]) - len(reports)
        return {"reports": reports + left * [protocol.report(engine.Stopped())]}

    attend(control_fd, answer)


def _warm_up() -> None:
    """Have BLAS take the memory it multiplies in: where there is none it ends the process, and no request
    should be under way then."""
    square = np.zeros((WARM, WARM), np.float32)
    np.matmul(square, square)


def _report(
    task: Message, arena: MappedFile, size: int, berths: list[MappedFile], run: Run
) -> Message:
    """Compute one task; whatever goes wrong is told, too."""
    started = time.perf_counter()
    try:
        arena.remap(size)
        _compute(task, arena, berths, run)
    except Exception as error:  # noqa: BLE001 - the server judges it; the worker goes on
        return protocol.report(error)
    return {"compute_s": time.perf_counter() - started}


def _compute(task: Message, arena: MappedFile, berths: list[MappedFile], run: Run) -> None:
    errand = layouts.read(task["text"])
    inputs = arena.views(errand.inputs, task["inputs"])
    for berth, size, fields in task["lying"]:
        berths[berth].remap(size)
        region = Region.of(fields)
        inputs[region.name] = berths[berth].view(region)
    outputs = {region.name: region for region in errand.outputs}

    def allocate(name: str, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        region = outputs[name]
        assert (region.shape, region.dtype) == (shape, dtype), (region, shape, dtype)
        return arena.view(region, task["outputs"])

    run(errand.call, inputs, errand.rows, allocate=allocate, stop=lambda: arena.stop)


if __name__ == "__main__":
    main(sys.argv[1:])
