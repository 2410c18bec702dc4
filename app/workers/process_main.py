"""A worker process: ``python -m app.workers.process_main CONTROL ARENA... BERTH... ARENAS THREADS``.

The first arguments are inherited file descriptors, the last two say how many of them are arenas, and how
many threads the engine has.
Where other workers have nothing to do, a task has their threads too; no bit of its results depends on that.
"""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

import engine
from app.workers import protocol
from app.workers.arena import Mapping, Region
from app.workers.attendant import attend
from app.workers.channel import Message
from app.workers.cpus import available_cpus

Run = Callable[..., dict[str, NDArray[Any]]]


def main(arguments: list[str], run: Run = engine.run) -> None:
    """Serve tasks until the server is gone."""
    control_fd, *fds, count, threads = map(int, arguments)
    engine.operations()  # imports them all, for which the first task would wait otherwise
    arenas = [Mapping(fd) for fd in fds[:count]]
    berths = [Mapping(fd, mmap.PROT_READ) for fd in fds[count:]]
    cpus = available_cpus()

    def answer(message: Message) -> Message:
        engine.set_threads(min(threads * (1 + message["helpers"]), cpus))
        return _answer(message, arenas, berths, run)

    attend(control_fd, answer)


def _answer(message: Message, arenas: list[Mapping], berths: list[Mapping], run: Run) -> Message:
    """Compute one task; whatever goes wrong is an answer, too."""
    started = time.perf_counter()
    try:
        _compute(message, arenas[message["arena"]], berths, run)
    except Exception as error:  # noqa: BLE001 - the server judges it; the worker goes on
        return protocol.report(error)
    return {"compute_s": time.perf_counter() - started}


def _compute(message: Message, arena: Mapping, berths: list[Mapping], run: Run) -> None:
    arena.remap(message["size"])
    regions = [Region(*fields) for fields in message["inputs"]]
    inputs = {region.name: arena.view(region) for region in regions}
    for berth, size, fields in message["lying"]:
        berths[berth].remap(size)
        region = Region(*fields)
        inputs[region.name] = berths[berth].view(region)
    outputs = {fields[0]: Region(*fields) for fields in message["outputs"]}

    def allocate(name: str, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        region = outputs[name]
        assert (list(region.shape), region.dtype) == (list(shape), dtype), (region, shape, dtype)
        return arena.view(region)

    run(
        protocol.prepared(message["plan"]),
        inputs,
        message["rows"],
        allocate=allocate,
        stop=lambda: arena.stop,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
