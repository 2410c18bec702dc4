"""A worker process, which computes tasks over shared memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from app.workers import protocol
from app.workers.arena import ALIGNMENT, Arena
from app.workers.berths import Berths, Lying
from app.workers.channel import Message
from app.workers.child import Child
from app.workers.layouts import Layout, Layouts
from app.workers.memory import KEEP_S, KEPT_ARENA_BYTES
from app.workers.offload import copying
from app.workers.task import STUCK, Outcome, Result, Task, WorkerDied
from app.workers.turns import give_back, leave_one

ARENAS = 5
"""Of each worker: one is computed in, one is delivered from, one is for the next trip, and the others can
be lent."""

LENT_SHARE = 4
"""An arena is lent for an answer of at least so large a part of it, since answers are what is counted."""

FREE_S = 2.0
"""A worker without a free arena for so long is given up."""

LOOK_S = 1e-3
"""How often one is looked for."""

COMMAND = (sys.executable, "-P", "-m", "app.workers.process_main")


_LAYOUTS = Layouts()


class _Laid(NamedTuple):
    """A task's layout, where its inputs and outputs begin, and which of its inputs lie in berths."""

    layout: Layout
    inputs: int
    outputs: int
    lying: list[Lying]


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """How worker processes are run.

    Attributes:
        threads: of the engine in each worker.
        arena_bytes: most shared memory for the inputs and outputs of one trip. A worker has ARENAS,
            so that results are read from one while another is computed in.
        keep_bytes: shared memory of one arena that is kept when it is not used.
        berths: where large bodies lie; None where they are copied.
        urgent: whether its work is to be done soon; else it yields to others.
        command: the program and its first arguments.
    """

    threads: int = 1
    arena_bytes: int = 1 << 30
    keep_bytes: int = 16 << 20
    berths: Berths | None = None
    urgent: bool = False
    command: Sequence[str] = COMMAND


class ProcessWorker(Child):
    """A worker process; see `Worker`."""

    def __init__(self, options: ProcessOptions) -> None:
        self._arenas: list[Arena] = []
        try:
            for _ in range(ARENAS):
                self._arenas.append(Arena(options.arena_bytes, options.keep_bytes))
        except OSError:
            self._close_arenas()
            raise
        self._berths = options.berths
        fds = [arena.fd for arena in self._arenas] + (options.berths.fds if options.berths else [])
        arguments = [ARENAS, options.threads]
        super().__init__(options.command, fds, arguments, urgent=options.urgent)
        self._turn = 0
        self._stopped = False  # somebody asked for it, maybe before the trip had an arena
        self._reply: asyncio.Future[Message] | None = None
        self._outputs: list[dict[str, Any]] = []
        self._resting: asyncio.TimerHandle | None = None
        self._cpus: frozenset[int] = frozenset()

    async def begin(self, trip: Sequence[Task], helpers: int = 0) -> None:
        """Write the inputs into an arena that nobody reads, unless they lie in berths; send the tasks."""
        self._rest_no_more()
        self._outputs = []
        self._stopped = False
        self._turn = await self._free_turn()
        arena = self._arenas[self._turn]
        laid, written, end = self._lay(trip)
        arena.fit(end)
        arena.stop = self._stopped
        views = [arena.views(each.layout.inputs, each.inputs) for each in laid]

        def write() -> None:
            for task, inputs in zip(trip, views, strict=True):
                task.write(inputs)

        await copying(written, write)
        self._outputs = [arena.views(each.layout.outputs, each.outputs) for each in laid]
        arena.watch(view for outputs in self._outputs for view in outputs.values())
        errands = [protocol.errand(each.layout.text, *each[1:]) for each in laid]
        self._reply = await self.ask(protocol.order(self._turn, arena.size, helpers, errands))

    def _lay(self, trip: Sequence[Task]) -> tuple[list[_Laid], int, int]:
        """Where each task's tensors are, and where the last input and the last output end."""
        lying = list(map(self._lying, trip))
        layouts = [
            _LAYOUTS.of(task, [each.region.name for each in there])
            for task, there in zip(trip, lying, strict=True)
        ]
        inputs = list(accumulate((each.input_bytes for each in layouts), initial=ALIGNMENT))
        written = inputs.pop()
        outputs = list(accumulate((each.output_bytes for each in layouts), initial=written))
        end = outputs.pop()
        return list(map(_Laid, layouts, inputs, outputs, lying)), written, end

    async def _free_turn(self) -> int:
        """An arena that nobody reads; there is one, but for a thread that has just copied from it."""
        for _ in range(round(FREE_S / LOOK_S)):
            for turn, arena in enumerate(self._arenas):
                if not arena.used:
                    return turn
            await asyncio.sleep(LOOK_S)
        raise WorkerDied(STUCK, "no arena gets free")

    def _lying(self, task: Task) -> list[Lying]:
        """The inputs of a task that need not be copied: large ones of a request by itself."""
        if self._berths is None or len(task.tensors) > 1:
            return []
        found = (self._berths.find(*item) for item in task.tensors[0].items())
        return [each for each in found if each is not None]

    async def finish(self) -> list[Outcome]:
        """Wait for what became of each task; see `Worker`."""
        assert self._reply is not None
        told = map(protocol.seconds, (await self._reply)["reports"])
        held = self._arenas[self._turn].size
        return [
            each if isinstance(each, Exception) else Result(outputs, each, held)
            for each, outputs in zip(told, self._outputs, strict=True)
        ]

    def lends(self, nbytes: int, held: int) -> bool:
        """Whether there are arenas enough for the next two tasks, and an answer is worth one."""
        free = sum(not arena.used for arena in self._arenas)
        return free >= 2 and held <= min(KEPT_ARENA_BYTES, LENT_SHARE * nbytes)

    def rest(self) -> None:
        """Give back shared memory beyond what is kept: at once, or if nothing comes for KEEP_S."""
        self._outputs = []
        self._rest_no_more()
        for arena in self._arenas:
            arena.tidy(KEEP_S)
        if any(arena.large for arena in self._arenas):
            self._resting = asyncio.get_running_loop().call_later(KEEP_S, self.rest)

    def _rest_no_more(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def leave_one(self, wanted: bool) -> None:
        """Compute on all processors but one, or on all again; see `Worker`."""
        if self.dead:
            return
        if wanted:
            self._cpus = leave_one(self.pid)
        elif self._cpus:
            give_back(self.pid, self._cpus)

    def stop(self) -> None:
        """Raise the flag that the engine polls between blocks."""
        self._stopped = True
        self._arenas[self._turn].stop = True

    async def close(self) -> None:
        """End the process, and give back the shared memory too."""
        self._outputs = []
        self._rest_no_more()
        await super().close()
        self._close_arenas()

    def _close_arenas(self) -> None:
        for arena in self._arenas:
            arena.close()
