"""The server's side of a worker process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.workers import protocol
from app.workers.arena import Arena, place
from app.workers.channel import MAX_MESSAGE_BYTES, Message, Unpacker, pack
from app.workers.offload import copying
from app.workers.task import CRASHED, KILLED, SUSPENDED, WATCH_S, Result, Task, WorkerDied
from app.workers.turns import come_first, come_last

COMMAND = (sys.executable, "-P", "-m", "app.workers.process_main")

START_TIMEOUT_S = 60.0
"""A worker that is not ready by then is given up."""

LEAVE_TIMEOUT_S = 1.0
"""How long a worker that was told to leave may take."""

_BLAS_THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


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


class ProcessWorker:
    """A worker process; see `Worker`."""

    def __init__(self, options: ProcessOptions) -> None:
        self._options = options
        self._arenas = [Arena(options.arena_bytes, options.keep_bytes) for _ in range(2)]
        self._turn = 0
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._unpacker = Unpacker()
        self._waiting: asyncio.Future[Any] | None = None
        self._dead = False
        self._reason = CRASHED
        self._burial: asyncio.Task[None] | None = None
        self._outputs: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        loop = asyncio.get_running_loop()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        fds = [theirs.fileno(), *(arena.fd for arena in self._arenas)]
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *self._options.command,
                *map(str, [*fds, self._options.threads]),
                pass_fds=fds,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                env=_environment(),
            )
        if self._options.urgent:
            come_first(self.pid)
        else:
            come_last(self.pid)
        ready = self._waiting = loop.create_future()
        loop.add_reader(self._control, self._read)
        give_up = loop.time() + START_TIMEOUT_S
        while not ready.done():
            if self.suspended():
                self.kill(SUSPENDED)
            elif loop.time() > give_up:
                raise WorkerDied("stuck", "not ready in time")
            await asyncio.wait([ready], timeout=min(WATCH_S, START_TIMEOUT_S))
        await ready

    async def begin(self, task: Task) -> None:
        """Write the inputs into the arena that is not being read, and send the task."""
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
        self._waiting = asyncio.get_running_loop().create_future()
        self._send(protocol.order(task, self._turn, arena.size, inputs, outputs))

    async def finish(self) -> Result:
        """Wait for the result; see `Worker`."""
        assert self._waiting is not None
        return Result(self._outputs, protocol.seconds(await self._waiting))

    def guard(self, future: asyncio.Future[None]) -> None:
        """Fail `future` when the process ends."""
        self._waiting = future
        if self._dead:
            future.set_exception(WorkerDied(self._reason))

    def rest(self) -> None:
        """Give back shared memory beyond what is kept."""
        self._outputs = {}
        for arena in self._arenas:
            arena.shrink()

    def stop(self) -> None:
        """Raise the flag that the engine polls between blocks."""
        self._arenas[self._turn].stop = True

    def suspended(self) -> bool:
        """Whether the process was stopped, as by SIGSTOP; it is left as it is."""
        if not hasattr(os, "waitid"):
            return False
        try:
            state = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return state is not None

    def kill(self, reason: str) -> None:
        """End the process at once."""
        self._reason = reason
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """Let the process leave, or end it; give back sockets, memory and the process's entry."""
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        if self._burial is not None:
            self._burial.cancel()
        self._outputs = {}
        self._waiting = None
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), LEAVE_TIMEOUT_S)
            except TimeoutError:
                self.kill(self._reason)
                await self._process.wait()
        for arena in self._arenas:
            arena.close()

    def _send(self, message: Message) -> None:
        if self._dead:
            raise WorkerDied(self._reason)
        assert self._control is not None
        data = pack(message)
        try:
            sent = self._control.send(data)
        except OSError as error:
            raise WorkerDied(self._reason, str(error)) from error
        if sent != len(data):
            raise WorkerDied("stuck", "it does not read what it is sent")

    def _read(self) -> None:
        """Take what the process sent; the end of the stream is the end of the process."""
        assert self._control is not None
        try:
            data = self._control.recv(MAX_MESSAGE_BYTES)
        except OSError:
            data = b""
        for message in self._unpacker.feed(data):
            self._settle(message)
        if not data:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._control)
            self._dead = True
            self._burial = loop.create_task(self._bury())

    async def _bury(self) -> None:
        """Learn what the process died of, and tell whoever waits."""
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), LEAVE_TIMEOUT_S)
        if self._reason == CRASHED and self._process.returncode == -signal.SIGKILL:
            self._reason = KILLED
        self._settle(WorkerDied(self._reason))

    def _settle(self, outcome: Message | WorkerDied) -> None:
        if self._waiting is None or self._waiting.done():
            return
        if isinstance(outcome, WorkerDied):
            self._waiting.set_exception(outcome)
        else:
            self._waiting.set_result(outcome)


def _environment() -> dict[str, str]:
    """Ours, with the same packages in reach and one thread for BLAS, before NumPy is imported."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        **dict.fromkeys(_BLAS_THREADS, "1"),
        "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root,
    }
