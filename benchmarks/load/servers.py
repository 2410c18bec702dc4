"""Servers on this machine: started, measured and ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

ROOT = Path(__file__).parents[2]

END_S = 20.0
"""How long a server may take to end."""

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")


class ServerFailed(Exception):
    """A server did not start; the message has what it wrote."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    port: int
    process: subprocess.Popen[str]
    log: IO[bytes]

    def cpu(self) -> float:
        """Seconds that the process and its children have computed."""
        total = 0.0
        for process in self._tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def memory(self) -> int:
        """Bytes of the process and its children; what they share counts once."""
        total = 0
        for process in self._tree():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                full = process.memory_full_info()
                total += getattr(full, "pss", full.uss)
        return total

    def _tree(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]


@contextlib.contextmanager
def serving(
    name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run ``python -m`` with arguments until the end of the block.

    Raises:
        ServerFailed: it did not say where it listens.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            found = _ADDRESS.search(process.stdout.readline())
            if found is None:
                log.seek(0)
                raise ServerFailed(f"{name}: {log.read().decode()[-2000:]}")
            yield Server(name, int(found[1]), process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
