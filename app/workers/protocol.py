"""What the messages between the server and a worker say; both sides in one place.

worker → server     {"ready": pid}                                  once
server → worker     {"arena", "size", "rows", "helpers", "inputs", "lying", "outputs",
                     "plan"}
worker → server     {"compute_s"} | {"refused", "issues"} | {"stopped"} | {"exhausted"} | {"failed"}
"""

from __future__ import annotations

import errno
import functools
import json
import os
import traceback
from collections.abc import Sequence
from dataclasses import astuple

import engine
from app.workers.arena import Region
from app.workers.berths import Lying
from app.workers.channel import Message
from app.workers.task import EXHAUSTED, ComputeFailed, Task, WorkerDied

CACHED_CALLS = 1024
"""Prepared calls that a worker keeps."""

TRACEBACK_CHARACTERS = 8000
"""How much of a traceback is told, from its end."""


def ready() -> Message:
    """This worker takes tasks."""
    return {"ready": os.getpid()}


def order(
    task: Task,
    arena: int,
    size: int,
    inputs: Sequence[Region],
    lying: Sequence[Lying],
    outputs: Sequence[Region],
) -> Message:
    """Compute a task whose tensors lie in an arena of `size` bytes, but for those in berths."""
    plan = {
        "operation": task.call.operation,
        "action": task.call.action,
        "config": task.config,
        "specs": {name: (spec.shape, spec.dtype) for name, spec in task.specs.items()},
        "wants": task.wants,
    }
    return {
        "arena": arena,
        "size": size,
        "rows": task.rows,
        "helpers": task.helpers,
        "inputs": inputs,
        "lying": lying,
        "outputs": outputs,
        # A string of its own, by which the worker finds what it prepared before.
        "plan": json.dumps(plan),
    }


@functools.lru_cache(CACHED_CALLS)
def prepared(plan: str) -> engine.Call:
    """The call that the server has, made again from what it was made from."""
    given = json.loads(plan)
    specs = {name: engine.TensorSpec(tuple(s), d) for name, (s, d) in given["specs"].items()}
    call, _ = engine.prepare(
        given["operation"], given["action"], given["config"], specs, given["wants"]
    )
    return call


def report(error: Exception) -> Message:
    """A task ended with an error."""
    if isinstance(error, engine.EngineError):
        return {"refused": type(error).__name__, "issues": [astuple(i) for i in error.issues]}
    if isinstance(error, engine.Stopped):
        return {"stopped": True}
    if _exhausted(error):
        return {"exhausted": True}
    text = "".join(traceback.format_exception(error))
    return {"failed": text[-TRACEBACK_CHARACTERS:]}


def _exhausted(error: Exception) -> bool:
    """Whether the process could not have what any process can: memory, or one more thread."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOMEM, errno.EAGAIN)
    # A thread that cannot be started has no class of error of its own.
    no_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    return no_thread or isinstance(error, MemoryError)


def seconds(reply: Message) -> float:
    """The seconds that a task took; raises what the worker reported instead.

    Raises:
        engine.EngineError, engine.Stopped, ComputeFailed, WorkerDied: see `check`.
    """
    check(reply)
    if "stopped" in reply:
        raise engine.Stopped
    if "refused" in reply:
        kind: type[engine.EngineError] = getattr(engine.errors, reply["refused"])
        raise kind([engine.Issue(tuple(loc), *rest) for loc, *rest in reply["issues"]])
    return float(reply["compute_s"])


def check(reply: Message) -> None:
    """Raise what a worker reported of itself.

    Raises:
        ComputeFailed: it failed at its work.
        WorkerDied: it has run out of memory, and is to be replaced like one that died.
    """
    if "exhausted" in reply:
        raise WorkerDied(EXHAUSTED)
    if "failed" in reply:
        raise ComputeFailed(reply["failed"])
