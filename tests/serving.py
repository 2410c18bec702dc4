"""Runs the service as its users do, for tests that talk to it over HTTP."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"http://\d+(\.\d+){3}:\d+")
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Running:
    """A service that has said it is ready."""

    url: str
    process: subprocess.Popen[str]


@contextmanager
def serving(
    command: Sequence[str] = (sys.executable, "-m", "app"),
    *options: str,
    cwd: Path = ROOT,
    environ: Mapping[str, str] | None = None,
    log: Path,
) -> Iterator[Running]:
    """Starts the service on a free port, waits for its line, and ends it by SIGTERM.

    Args:
        command: what starts it; `options` and the port are added.
        environ: variables beside those of this process, less every setting's.
        log: where its standard error goes.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("CONVOKE_")}
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*command, "--port", "0", *options],
            cwd=cwd,
            env=own | dict(environ or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            yield Running(_address(process, log), process)
        finally:
            process.terminate()
            try:
                process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """The address in the line that the service prints once it is ready."""
    assert process.stdout is not None
    end = time.monotonic() + START_TIMEOUT_S
    for line in process.stdout:
        if found := ADDRESS.search(line):
            return found[0]
        if time.monotonic() > end:
            break
    raise AssertionError(f"the service did not start:\n{log.read_text()}")
