"""A service under test: its processes, what they hold, and what is done to them."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.load.servers import Server, serving

SCRIBE = "\0app.scribe\0"
"""What it is started with."""

_SHARED = re.compile(r"memfd:convoke(?:-body)? \(")
"""What arenas and berths are called in a process's mappings."""


@dataclass(frozen=True)
class Held:
    """What the processes of a service hold; in all but `memory` without the scribes, which come and go.

    Attributes:
        memory: bytes, shared ones counted once. processes, threads: how many.
        mappings: of memory that server and workers share; each comes with the work that needs it.
        files: how many are open, less one for each mapping, which holds one.
        rss: bytes of the server process alone.
    """

    memory: int
    processes: int
    threads: int
    files: int
    mappings: int
    rss: int


class Service:
    """A running service whose processes can be looked at and harmed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.port = server.port
        self.pid = server.process.pid

    @property
    def children(self) -> list[int]:
        """The ids of all its processes; those that have ended and are not yet reaped are none."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [pid for pid in map(int, listed) if _state(pid) not in ("Z", "X", "")]

    @property
    def workers(self) -> list[int]:
        """The workers among them, which are there all the time."""
        scribes = self.scribes
        return [pid for pid in self.children if pid not in scribes]

    @property
    def scribes(self) -> list[int]:
        """Those that read and write large JSON and are there now."""
        return [pid for pid in self.children if SCRIBE in _read(f"/proc/{pid}/cmdline")]

    def log(self) -> str:
        """What it has written to its log so far."""
        return Path(f"/proc/{os.getpid()}/fd/{self._server.log.fileno()}").read_text()

    def held(self) -> Held:
        """What it holds now."""
        pids = [self.pid, *self.workers]
        mappings = sum(_mappings(pid) for pid in pids)
        return Held(
            memory=self._server.memory(),
            processes=len(pids),
            threads=sum(_count(f"/proc/{pid}/task") for pid in pids),
            files=sum(_count(f"/proc/{pid}/fd") for pid in pids) - mappings,
            mappings=mappings,
            rss=rss(self.pid),
        )

    @property
    def employed(self) -> list[int]:
        """The workers that have been given something to compute since they started."""
        return [pid for pid in self.workers if _mappings(pid)]

    def connections(self) -> int:
        """How many clients the server has a socket for."""
        sockets = psutil.Process(self.pid).net_connections("tcp")
        return sum(socket.status != psutil.CONN_LISTEN for socket in sockets)

    def kill(self) -> list[int]:
        """Kill the server outright; returns the processes that it had."""
        children = self.children
        self._server.process.kill()
        self._server.process.wait()
        return children

    def terminate(self) -> int:
        """Ask it to end, and wait; returns the exit status."""
        self._server.process.terminate()
        return self._server.process.wait(60)


@contextlib.contextmanager
def running(*options: str, **settings: str) -> Iterator[Service]:
    """A service with the settings given, on a free port unless one is among them."""
    port = [] if "port" in settings else ["--port", "0"]
    environment = {f"CONVOKE_{name.upper()}": value for name, value in settings.items()}
    with serving("convoke", ["app", *port, *options], environment) as server:
        yield Service(server)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a process a signal, if it still runs."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def starve(pid: int) -> None:
    """Let a process have no more address space than it has now."""
    size = int((_read(f"/proc/{pid}/statm") or "0").split()[0]) * resource.getpagesize()
    if size:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_AS, (size, size))


def until(true: Callable[[], object], seconds: float = 60.0) -> float:
    """Wait for something that another process does; returns how long it took.

    Raises:
        TimeoutError: it did not happen in time.
    """
    started = time.monotonic()
    while not true():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"it did not happen within {seconds} s")
        time.sleep(0.005)
    return time.monotonic() - started


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    return _state(pid) not in ("Z", "X", "")


def rss(pid: int) -> int:
    """Bytes of a process that are in memory."""
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * resource.getpagesize() if fields else 0


def _state(pid: int) -> str:
    stat = _read(f"/proc/{pid}/stat")
    return stat.rpartition(")")[2].split()[0] if stat else ""


def _mappings(pid: int) -> int:
    return len(_SHARED.findall(_read(f"/proc/{pid}/maps")))


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _count(path: str) -> int:
    try:
        return sum(1 for _ in Path(path).iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0
