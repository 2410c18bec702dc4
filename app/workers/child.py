"""The server's side of a process that it started: its life, and the messages to it and from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.workers.channel import MAX_MESSAGE_BYTES, Message, Unpacker, pack
from app.workers.task import CRASHED, EXHAUSTED, KILLED, STUCK, SUSPENDED, WATCH_S, WorkerDied, lost
from app.workers.turns import come_first, come_last

START_TIMEOUT_S = 60.0
"""A process that is not ready by then is given up."""

LIBRARY_STATUS = 1
"""What a library that cannot go on ends a process with, as OpenBLAS does without memory: `attend` ends it
with another."""

LEAVE_TIMEOUT_S = 1.0
"""How long a process that was told to leave may take."""

LOOK_S = 1e-3
"""How often it is looked whether a process that is ending has ended."""

STDERR = Path("/proc/self/fd/2")

FOR_THE_SERVER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager's SIGTERM and the SIGHUP of a terminal that closes reach the whole group; the
server drains, then ends the others."""

_BLAS_THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class Child:
    """A process that answers one message after the other.

    Args:
        command: the program and its first arguments; it is also told the descriptors of its end of
            the control socket and of `fds`, which it inherits, and `arguments`.
        urgent: whether its work is to be done soon; else it yields to others.

    Attributes:
        dead: it has closed its end of the socket.
    """

    def __init__(
        self,
        command: Sequence[str],
        fds: Sequence[int],
        arguments: Sequence[object] = (),
        *,
        urgent: bool = False,
    ) -> None:
        self._command = command
        self._fds = fds
        self._arguments = arguments
        self._urgent = urgent
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._unpacker = Unpacker()
        # Of whoever waits for a reply, or its death.
        self._waiting: asyncio.Future[Any] | None = None
        self._reason = CRASHED  # of its death, see `WorkerDied`
        self._burial: asyncio.Task[None] | None = None
        self._ready = False
        self.dead = False

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    @property
    def up(self) -> bool:
        """Whether it is ready, and has not died since."""
        return self._ready and not self.dead

    async def start(self) -> None:
        """Start the process and wait until it is ready; raises WorkerDied."""
        loop = asyncio.get_running_loop()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        fds = [theirs.fileno(), *self._fds]
        with theirs, _errors() as errors, _blocked():
            # Not the loop's way: uvloop starts processes that block no signal, whoever starts them.
            self._process = subprocess.Popen(
                [*self._command, *map(str, [*fds, *self._arguments])],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_environment(),
            )
        # One that has died already is told of by its socket.
        if self._urgent:
            come_first(self.pid)
        ready = self._waiting = loop.create_future()
        loop.add_reader(self._control, self._read)
        looked = loop.time()
        give_up = looked + START_TIMEOUT_S
        while not ready.done():
            now = loop.time()
            give_up += lost(now - looked)
            looked = now
            if self.suspended():
                self.kill(SUSPENDED)
            elif now > give_up:
                raise WorkerDied(STUCK, "not ready in time")
            await asyncio.wait([ready], timeout=WATCH_S)
        await ready
        if not self._urgent:
            # Not sooner: somebody waited for it until now, and beside other programs longer.
            come_last(self.pid)
        self._ready = True

    async def ask(self, message: Message) -> asyncio.Future[Message]:
        """Send a message; the future gets the reply, or fails with WorkerDied, as this does."""
        if self.dead:
            raise await self._death()
        assert self._control is not None
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        data = pack(message)
        try:
            sent = self._control.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            while not self.dead:
                self._read()  # it has ended, of which nobody was told yet
            raise await self._death(str(error)) from error
        if sent != len(data):
            raise WorkerDied(STUCK, "it does not read what it is sent")
        self._waiting = reply
        return reply

    def guard(self, future: asyncio.Future[None]) -> None:
        """Fail `future` when the process ends."""
        self._waiting = future
        if self._burial is not None and self._burial.done():
            future.set_exception(WorkerDied(self._reason))

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
            self._process.kill()

    async def close(self) -> None:
        """Let the process leave, or end it; give back its socket and its entry."""
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        if self._burial is not None:
            self._burial.cancel()
        self._waiting = None
        if self._process is not None:
            if not self._ready:
                self.kill(self._reason)  # it would hear of it only then, and has nothing to end
            try:
                # Not `wait_for`: until Python 3.12 it loses a cancellation that comes with the end.
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await _end_of(self._process)
            except TimeoutError:
                self.kill(self._reason)
                await _end_of(self._process)

    def _read(self) -> None:
        """Take what the process sent; the end of the stream is the end of the process."""
        assert self._control is not None
        try:
            data = self._control.recv(MAX_MESSAGE_BYTES)
        except OSError:
            data = b""
        for message in self._unpacker.feed(data):
            self._resolve(message)
        if not data:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._control)
            self.dead = True
            self._burial = loop.create_task(self._bury())

    async def _bury(self) -> None:
        """Learn what the process died of, and tell whoever waits."""
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await _end_of(self._process)
        if self._reason == CRASHED:
            if self._process.returncode == -signal.SIGKILL:
                self._reason = KILLED
            elif self._process.returncode == LIBRARY_STATUS and self._ready:
                self._reason = EXHAUSTED
        self._resolve(WorkerDied(self._reason))

    async def _death(self, detail: str = "") -> WorkerDied:
        """How it died, once that is known."""
        assert self._burial is not None
        await asyncio.wait([self._burial])
        return WorkerDied(self._reason, detail)

    def _resolve(self, outcome: Message | WorkerDied) -> None:
        """Give an outcome to whoever waits for one; nobody does where it came too late."""
        if self._waiting is None or self._waiting.done():
            return
        if isinstance(outcome, WorkerDied):
            self._waiting.set_exception(outcome)
        else:
            self._waiting.set_result(outcome)


async def _end_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended, and give back its entry."""
    while process.poll() is None:
        await asyncio.sleep(LOOK_S)


@contextlib.contextmanager
def _errors() -> Iterator[int | None]:
    """What a process has for its stderr: a pipe of ours opened anew, so as not to wait for who reads it.

    Waiting for a log that nobody reads, it would neither work nor end. What a pipe has no room for is lost.
    """
    fd = None  # as it is, where it is no pipe, or the system cannot open it anew
    with contextlib.suppress(OSError):
        if STDERR.is_fifo():
            fd = os.open(STDERR, os.O_WRONLY | os.O_NONBLOCK)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    """Have what is started now leave signals to the server, from before its first instruction on.

    Until it could see to that itself, Python would end by one, or with a traceback in the midst of the log.
    Meanwhile they reach us by another thread, or a moment later.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_SERVER)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _environment() -> dict[str, str]:
    """Ours, with the same packages in reach and one thread for BLAS, before NumPy is imported."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        **dict.fromkeys(_BLAS_THREADS, "1"),
        "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root,
    }
