"""What the messages between the server and a worker say; both sides in one place.

worker → server     {"ready": pid}                                  once
server → worker     {"arena", "size", "helpers", "tasks": [{"text", "inputs", "outputs", "lying"}, …]}
worker → server     {"reports": [{"compute_s"} | {"refused", "issues"} | {"stopped"} | {"exhausted"} |
                     {"failed"}, …]}
"""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Sequence
from dataclasses import astuple

import engine
from app.workers.berths import Lying
from app.workers.channel import Message
from app.workers.task import EXHAUSTED, ComputeFailed, WorkerDied

TRACEBACK_CHARACTERS = 4000
"""How much of a traceback is told, from its end: written as JSON, a character may take twelve bytes."""


def ready() -> Message:
    """This worker takes tasks."""
    return {"ready": os.getpid()}


def order(arena: int, size: int, helpers: int, tasks: Sequence[Message]) -> Message:
    """Compute tasks whose tensors lie in an arena of `size` bytes, but for those in berths."""
    return {"arena": arena, "size": size, "helpers": helpers, "tasks": tasks}


def errand(text: str, inputs: int, outputs: int, lying: Sequence[Lying]) -> Message:
    """One task of an order: the text of its layout, where its inputs and outputs begin, and what lies in
    berths."""
    return {"text": text, "inputs": inputs, "outputs": outputs, "lying": lying}


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


def failed(told: Message) -> bool:
    """Whether a report holds a traceback."""
    return "failed" in told


def _exhausted(error: Exception) -> bool:
    """Whether the process could not have what any process can: memory, one more thread or one more file."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
    # A thread that cannot be started has no class of error of its own.
    no_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    return no_thread or isinstance(error, MemoryError)


def seconds(told: Message) -> float | Exception:
    """The seconds that a task took, or what the worker reported instead.

    Returns:
        A number, or engine.EngineError, engine.Stopped or ComputeFailed.

    Raises:
        WorkerDied: see `check`.
    """
    try:
        check(told)
    except ComputeFailed as error:
        # Its traceback would hold the outputs of others, in a circle with what is returned.
        return error.with_traceback(None)
    if "stopped" in told:
        return engine.Stopped()
    if "refused" in told:
        kind: type[engine.EngineError] = getattr(engine.errors, told["refused"])
        return kind([engine.Issue(tuple(loc), *rest) for loc, *rest in told["issues"]])
    return float(told["compute_s"])


def check(reply: Message) -> None:
    """Raise what a worker reported of itself.

    Raises:
        ComputeFailed: it failed at its work.
        WorkerDied: it has run out of memory, and is to be replaced like one that died.
    """
    if "exhausted" in reply:
        raise WorkerDied(EXHAUSTED)
    if failed(reply):
        raise ComputeFailed(reply["failed"])
