"""A worker process, which computes tasks over shared memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.workers import protocol
from app.workers.arena import Arena, place
from app.workers.channel import Message
from app.workers.child import Child
from app.workers.memory import KEEP_S
from app.workers.offload import copying
from app.workers.task import Result, Task

COMMAND = (sys.executable, "-P", "-m", "app.workers.process_main")


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """How worker processes are run.

    Attributes:
        threads: of the engine in each worker.
        arena_bytes: most shared memory for the inputs and outputs of one task. A worker has two
            arenas, so that results are read from one while the other is computed in.
        keep_bytes: shared memory of one arena that is kept when it is not used.
        urgent: whether its work is to be done soon; else it yields to others.
        command: the program and its first arguments.
    """

    threads: int = 1
    arena_bytes: int = 1 << 30
    keep_bytes: int = 16 << 20
    urgent: bool = False
    command: Sequence[str] = COMMAND


class ProcessWorker(Child):
    """A worker process; see `Worker`."""

    def __init__(self, options: ProcessOptions) -> None:
        self._arenas = [Arena(options.arena_bytes, options.keep_bytes) for _ in range(2)]
        fds = [arena.fd for arena in self._arenas]
        super().__init__(options.command, fds, [options.threads], urgent=options.urgent)
        self._turn = 0
        self._reply: asyncio.Future[Message] | None = None
        self._outputs: dict[str, Any] = {}
        self._resting: asyncio.TimerHandle | None = None

    async def begin(self, task: Task) -> None:
        """Write the inputs into the arena that is not being read, and send the task."""
        self._rest_no_more()
        self._turn ^= 1
        arena = self._arenas[self._turn]
        inputs, written = place(task.joined())
        outputs, end = place(
            [(name, spec.dtype, spec.shape) for name, spec in task.call.outputs(task.rows).items()],
            written,
        )
        arena.fit(end)
        arena.stop = False
        views = {region.name: arena.view(region) for region in inputs}
        await copying(written, lambda: task.write(views))
        self._outputs = {region.name: arena.view(region) for region in outputs}
        self._reply = self.ask(protocol.order(task, self._turn, arena.size, inputs, outputs))

    async def finish(self) -> Result:
        """Wait for the result; see `Worker`."""
        assert self._reply is not None
        return Result(self._outputs, protocol.seconds(await self._reply))

    def rest(self) -> None:
        """Give back shared memory beyond what is kept: at once, or if nothing comes for KEEP_S."""
        self._outputs = {}
        for arena in self._arenas:
            if not arena.waits:
                arena.shrink()
        if any(arena.waits for arena in self._arenas):
            self._rest_no_more()
            self._resting = asyncio.get_running_loop().call_later(KEEP_S, self._shrink)

    def _shrink(self) -> None:
        for arena in self._arenas:
            arena.shrink()

    def _rest_no_more(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def stop(self) -> None:
        """Raise the flag that the engine polls between blocks."""
        self._arenas[self._turn].stop = True

    async def close(self) -> None:
        """End the process, and give back the shared memory too."""
        self._outputs = {}
        self._rest_no_more()
        await super().close()
        for arena in self._arenas:
            arena.close()
