"""What the two sides tell each other is what was meant."""

from __future__ import annotations

import errno

import pytest

import engine
from app.workers import protocol
from app.workers.channel import Message, Unpacker, pack
from app.workers.task import EXHAUSTED, ComputeFailed, WorkerDied
from engine.errors import EngineError, InvalidIndices, ShapeMismatch


def over_the_wire(message: Message) -> Message:
    (got,) = Unpacker().feed(pack(message))
    return got


@pytest.mark.parametrize("kind", [InvalidIndices, ShapeMismatch, EngineError])
def test_refusals_arrive_as_they_were_raised(kind: type[EngineError]) -> None:
    issues = [
        engine.Issue(("indices", 3), "outside", "less than 4", 9),
        engine.Issue(("x",), "odd"),
    ]
    got = protocol.seconds(over_the_wire(protocol.report(kind(issues))))
    assert type(got) is kind
    assert got.issues == tuple(issues)


def test_a_stop_and_a_failure_are_told_apart() -> None:
    stop = protocol.seconds(over_the_wire(protocol.report(engine.Stopped())))
    assert isinstance(stop, engine.Stopped)
    failure = protocol.seconds(over_the_wire(protocol.report(ZeroDivisionError("why"))))
    assert isinstance(failure, ComputeFailed)
    assert "ZeroDivisionError: why" in str(failure)
    assert failure.__traceback__ is None  # it would hold what the caller holds


def test_of_a_long_failure_its_end_is_told() -> None:
    failure = protocol.seconds(over_the_wire(protocol.report(ValueError("🌊" * 20_000 + " end"))))
    assert isinstance(failure, ComputeFailed)
    assert str(failure).endswith("🌊 end\n")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "no memory"),
        OSError(errno.EAGAIN, "no process"),
        OSError(errno.EMFILE, "too many open files"),
        OSError(errno.ENFILE, "too many open files in the system"),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_worker_without_memory_is_as_good_as_dead(error: Exception) -> None:
    with pytest.raises(WorkerDied) as died:
        protocol.seconds(over_the_wire(protocol.report(error)))
    assert died.value.reason == EXHAUSTED


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EPERM, "not permitted"),
        RuntimeError("cannot be"),
        ValueError("can't start new thread"),
    ],
)
def test_whatever_else_is_wrong_is_a_failure_of_the_task(error: Exception) -> None:
    failure = protocol.seconds(over_the_wire(protocol.report(error)))
    assert isinstance(failure, ComputeFailed)
