"""A request once it is understood: what is asked, how it is answered, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from numpy.typing import NDArray

import engine
from app.batcher import Entry
from app.visitor import NOBODY, Visitor
from app.wire import Piece


@dataclass(frozen=True, slots=True)
class Answer:
    """Outputs of one request, as views that are valid only while they are encoded.

    Attributes:
        tensors: by name.
        requests, rows: how many shared the call.
    """

    tensors: Mapping[str, NDArray[Any]]
    requests: int
    rows: int

    def copied(self) -> Answer:
        """The same, to be kept."""
        return replace(self, tensors={n: array.copy() for n, array in self.tensors.items()})


class Reserved(Protocol):
    """A place in the queue that was kept for a job."""

    def take(self, nbytes: int, now: float) -> None:
        """Turn it into a permit, or raise QueueFull."""


Write = Callable[[Answer], Awaitable[memoryview]]
"""Makes the body of an answer beside the loop, from a copy of it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request.

    Attributes:
        call, samples: from `engine.prepare`.
        config, specs, wants: what `engine.prepare` was given.
        tensors: read-only views of the request's body.
        deadline: on `time.monotonic`; None where there is none.
        caller: whose turn in the queue it uses.
        encode: makes the body of the answer; called on a thread where it copies much.
        pieces: makes it of views on the answer's tensors, without a copy, where there is such a way.
        visitor: who asks, to be known again after a refusal.
        write: makes it in place of `encode`.
        reserved: the place that was kept for it while its body came; None where none was.
    """

    call: engine.Call
    samples: int
    config: Mapping[str, Any] | None
    specs: Mapping[str, engine.TensorSpec]
    wants: Sequence[str] | None
    tensors: Mapping[str, NDArray[Any]]
    deadline: float | None
    caller: str
    encode: Callable[[Answer], bytes | memoryview]
    pieces: Callable[[Answer], list[Piece]] | None = None
    visitor: Visitor = NOBODY
    write: Write | None = None
    reserved: Reserved | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """An answer, the seconds that each stage took, and the company it was computed in.

    Attributes:
        body: the answer encoded; from the runner, its copy where the job has a `write`.
        requests, rows: that shared the call, this one's among them.
    """

    body: bytes | memoryview | list[Piece] | Answer
    queue_s: float
    compute_s: float
    encode_s: float
    requests: int
    rows: int


class Observer(Protocol):
    """Who is told of what happens."""

    def batch_done(
        self, operation: str, action: str, requests: int, rows: int, compute_s: float
    ) -> None:
        """A call was computed."""

    def worker_restarted(self, reason: str) -> None:
        """A worker ended, for a reason that `WorkerDied` tells."""

    def dropped(self, reason: str) -> None:
        """A job lost its caller (`cancelled`) or its time (`deadline`)."""


@dataclass(eq=False, slots=True, kw_only=True)
class Pending(Entry):
    """A job between acceptance and answer.

    Attributes:
        future: settled once, with the answer or what became of the job.
        accepted: when, on `time.monotonic`.
        blame: how much the deaths of workers that computed it alone speak against it, see `BLAME`.
        abandon: tells the call it is part of why nobody waits for it any more; None while it is
            not part of one.
        timer: of its deadline; None where it has none.
    """

    job: Job
    future: asyncio.Future[Done]
    accepted: float
    blame: float = 0.0
    abandon: Callable[[str], None] | None = None
    timer: asyncio.TimerHandle | None = None

    def fail(self, error: Exception) -> None:
        """Settle it with an error, unless it is settled."""
        if not self.future.done():
            # The frames of a traceback hold this job, and so would keep its tensors in a circle.
            self.future.set_exception(error.with_traceback(None))
