"""A worker process whose engine misbehaves on request: the first number of a sample says how."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import engine
from app.early import end_with_server
from app.workers import process_main
from engine.errors import InvalidIndices
from tests.app import gates

DIE, FAIL, UNTIL_STOPPED, FOR_EVER, AT_GATE, REFUSE, STARVE, GIVE_UP = range(-1001, -1009, -1)
"""Crash; raise; compute until asked to stop; not even then; wait for the gate; refuse; run
out of memory; end as OpenBLAS does where it gets none."""

LONG_TRIP_S = 60.0
"""So much that a trip takes long for the gate alone, however slow the machine is."""

gates_passed: list[None] = []


def perf_counter() -> float:
    """The worker's clock, on which whoever waits at the gate takes long."""
    return time.perf_counter() + 2 * LONG_TRIP_S * len(gates_passed)


def run(call: engine.Call, tensors: Any, rows: Any, allocate: Any, stop: Any) -> Any:
    """`engine.run`, after what the samples ask for."""
    asked = {float(sample.flat[0]) for sample in tensors["x"]}
    if DIE in asked:
        os.kill(os.getpid(), signal.SIGSEGV)
    if FAIL in asked:
        raise RuntimeError("🌊" * 10_000 + " as asked")
    if STARVE in asked:
        raise MemoryError
    if GIVE_UP in asked:
        os._exit(1)
    if REFUSE in asked:
        raise InvalidIndices(engine.Issue(("indices",), "as asked", "less", 7))
    if FOR_EVER in asked:
        threading.Event().wait()
    while UNTIL_STOPPED in asked:
        if stop():
            raise engine.Stopped
        time.sleep(0.001)
    if AT_GATE in asked:
        gates.wait()
        gates_passed.append(None)
    return engine.run(call, tensors, rows, allocate, stop)


if __name__ == "__main__":
    end_with_server(int(sys.argv[1]))  # as the worker's own module does
    clock = SimpleNamespace(perf_counter=perf_counter)
    vars(process_main).update(LONG_TRIP_S=LONG_TRIP_S, time=clock)
    process_main.main(sys.argv[1:], run)
