"""A gate at which a process under test waits until its test opens it."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path

VARIABLE = "CONVOKE_TEST_GATE"
"""Environment variable with the path of a named pipe."""


def wait() -> None:
    """Wait at the gate, in the process."""
    # Reading ends when the test, which opened the pipe to learn that we are here, closes it.
    Path(os.environ[VARIABLE]).read_bytes()


class Gate:
    """The test's side."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        self._end: io.BufferedWriter | None = None

    async def reached(self) -> None:
        """Wait until a process is at the gate."""
        self._end = await asyncio.to_thread(self._path.open, "wb")

    def open(self) -> None:
        """Let it go on."""
        assert self._end is not None
        self._end.close()
