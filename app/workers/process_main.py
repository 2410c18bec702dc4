"""A worker process: ``python -m app.workers.process_main CONTROL ARENA ARENA THREADS``.

The first three arguments are inherited file descriptors. It ends when the server closes its end of
the control socket, and so also when the server is killed, even in the middle of a computation.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

import engine
from app.workers import protocol
from app.workers.arena import Mapping, Region
from app.workers.channel import Message, messages, pack
from app.workers.memory import keep_freed_memory

_PR_SET_PDEATHSIG = 1

Run = Callable[..., dict[str, NDArray[Any]]]


def main(arguments: list[str], run: Run = engine.run) -> None:
    """Serve tasks until the server is gone."""
    control_fd, *arena_fds, threads = map(int, arguments)
    engine.set_threads(threads)
    engine.operations()  # imports them all, for which the first task would wait otherwise
    arenas = [Mapping(fd) for fd in arena_fds]
    attend(control_fd, lambda message: _answer(message, arenas, run))


def attend(control_fd: int, answer: Callable[[Message], Message]) -> None:
    """Answer the server's messages until it is gone."""
    # Ctrl-C and a service manager's SIGTERM reach the whole group; the server drains, then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    control = socket.socket(fileno=control_fd)
    _end_with_server(control)
    keep_freed_memory()
    control.sendall(pack(protocol.ready()))
    for message in messages(control):
        control.sendall(pack(answer(message)))


def _end_with_server(control: socket.socket) -> None:
    """End this process when the other side of the control socket is closed."""
    if sys.platform == "linux":
        # A worker that is stopped, or inside a call that holds the interpreter's lock, runs no
        # thread that could watch; the kernel does.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        poll = select.poll()
        poll.register(control, select.POLLHUP)
        poll.poll()
        os._exit(0)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()


def _answer(message: Message, arenas: list[Mapping], run: Run) -> Message:
    """Compute one task; whatever goes wrong is an answer, too."""
    started = time.perf_counter()
    try:
        _compute(message, arenas[message["arena"]], run)
    except Exception as error:  # noqa: BLE001 - the server judges it; the worker goes on
        return protocol.report(error)
    return {"compute_s": time.perf_counter() - started}


def _compute(message: Message, arena: Mapping, run: Run) -> None:
    arena.remap(message["size"])
    inputs = [Region(*fields) for fields in message["inputs"]]
    outputs = {fields[0]: Region(*fields) for fields in message["outputs"]}

    def allocate(name: str, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        region = outputs[name]
        assert (list(region.shape), region.dtype) == (list(shape), dtype), (region, shape, dtype)
        return arena.view(region)

    run(
        protocol.prepared(message["plan"]),
        {region.name: arena.view(region) for region in inputs},
        message["rows"],
        allocate=allocate,
        stop=lambda: arena.stop,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
