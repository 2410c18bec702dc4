"""What the two sides tell each other is what was meant."""

from __future__ import annotations

import errno
import json

import pytest

import engine
from app.workers import protocol
from app.workers.channel import Unpacker, pack
from app.workers.task import EXHAUSTED, ComputeFailed, Task, WorkerDied
from engine.errors import EngineError, InvalidIndices, ShapeMismatch
from tests.app.dispatching import job


def over_the_wire(message: dict[str, object]) -> dict[str, object]:
    (got,) = Unpacker().feed(pack(message))
    return got


@pytest.mark.parametrize("kind", [InvalidIndices, ShapeMismatch, EngineError])
def test_refusals_arrive_as_they_were_raised(kind: type[EngineError]) -> None:
    issues = [
        engine.Issue(("indices", 3), "outside", "less than 4", 9),
        engine.Issue(("x",), "odd"),
    ]
    with pytest.raises(kind) as got:
        protocol.seconds(over_the_wire(protocol.report(kind(issues))))
    assert type(got.value) is kind
    assert got.value.issues == tuple(issues)


def test_a_stop_and_a_failure_are_told_apart() -> None:
    with pytest.raises(engine.Stopped):
        protocol.seconds(over_the_wire(protocol.report(engine.Stopped())))
    with pytest.raises(ComputeFailed, match="ZeroDivisionError: why"):
        protocol.seconds(over_the_wire(protocol.report(ZeroDivisionError("why"))))


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(errno.ENOMEM, "no memory"), RuntimeError("can't start new thread")],
)
def test_a_worker_without_memory_is_as_good_as_dead(error: Exception) -> None:
    with pytest.raises(WorkerDied) as died:
        protocol.seconds(over_the_wire(protocol.report(error)))
    assert died.value.reason == EXHAUSTED


@pytest.mark.parametrize("action", ["forward", "backward"])
def test_the_worker_prepares_the_call_that_the_server_has(action: str) -> None:
    given = job(action=action, samples=3)
    task = Task(given.call, {"stride": [1]}, given.specs, None, [given.tensors], [3])
    message = over_the_wire(protocol.order(task, 1, 4096, [], [], []))
    assert protocol.prepared(str(message["plan"])) == given.call
    assert json.loads(str(message["plan"]))["config"] == {"stride": [1]}
