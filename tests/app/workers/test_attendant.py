"""A process that answers the server, and ends with it."""

from __future__ import annotations

import os
import platform
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.workers.attendant import SACRIFICE, UNEXPECTED_STATUS
from app.workers.channel import Message, messages, pack
from app.workers.child import LIBRARY_STATUS, _errors
from tests.redirecting import fill, piped, redirected

STARTED = """
import sys
import app.scribe.__main__, app.workers.process_main

print("asyncio" in sys.modules)
"""

PROGRAM = """
import sys, threading
import numpy as np
from app.workers import attendant

attendant.KEEP_S = 0.2
kept = []

def answer(message):
    if message == {"for": "ever"}:
        threading.Event().wait()
    if message == {"an": "error"}:
        raise SystemExit("as asked")
    if "bytes" in message:
        freed = np.ones(message["bytes"], np.uint8)
        kept.append(np.ones(100_000, np.uint8))  # What ends above it on the heap.
        del freed
        return {"resident": int(open("/proc/self/statm").read().split()[1])}
    return {"to": message}

attendant.attend(int(sys.argv[1]), answer)
"""


class Attendant:
    """A process at its work, and the server's side of its control socket."""

    def __init__(self, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self.control, self.process = control, process
        self._messages = messages(control, 30, pytest.fail)

    def ask(self, message: Message) -> None:
        self.control.sendall(pack(message))

    def reply(self) -> Message:
        return next(self._messages)


@contextmanager
def attending(errors: int | None = None) -> Iterator[Attendant]:
    ours, theirs = socket.socketpair()
    ours.settimeout(30)
    command = [sys.executable, "-c", PROGRAM, str(theirs.fileno())]
    with ours:
        with theirs:
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        with process:
            try:
                yield Attendant(ours, process)
            finally:
                process.kill()


def test_it_says_that_it_is_ready_and_answers_in_order() -> None:
    with attending() as it:
        assert it.reply() == {"ready": it.process.pid}
        it.ask({"a": 1})
        it.ask({"b": [2]})
        assert it.reply() == {"to": {"a": 1}}
        assert it.reply() == {"to": {"b": [2]}}


@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_when_the_server_is_gone(busy: bool) -> None:
    with attending() as it:
        it.reply()
        if busy:
            it.ask({"for": "ever"})
        it.control.close()
        assert it.process.wait(timeout=30) == 0


def test_after_an_error_it_does_not_end_as_if_a_library_had_found_no_memory() -> None:
    with attending() as it:
        it.reply()
        it.ask({"an": "error"})
        assert it.process.wait(timeout=30) == UNEXPECTED_STATUS != LIBRARY_STATUS


def test_it_ends_after_an_error_that_it_cannot_tell() -> None:
    with piped(2) as (_, write), _errors() as errors, attending(errors) as it:
        fill(write)
        assert errors is not None
        with pytest.raises(BlockingIOError):
            os.write(errors, b"more")
        it.reply()
        it.ask({"an": "error"})
        assert it.process.wait(timeout=30) == UNEXPECTED_STATUS


def test_a_log_that_is_no_pipe_is_everybodys(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log, redirected(2, log.fileno()), _errors() as errors:
        assert errors is None


def test_it_ends_in_order_when_the_server_was_gone_before_it_was_ready() -> None:
    with attending() as it:
        it.control.close()
        assert it.process.wait(timeout=30) == 0


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="no such score")
def test_the_kernel_kills_it_before_the_server_when_memory_is_short() -> None:
    def adjusted(pid: int | str) -> int:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    with attending() as it:
        it.reply()
        assert adjusted(it.process.pid) == min(adjusted("self") + SACRIFICE, 1000)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only there it can be asked for")
def test_memory_is_kept_for_the_next_message_and_given_back_when_none_comes() -> None:
    size, page = 25 << 20, resource.getpagesize()

    def resident(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page

    with attending() as it:
        it.reply()
        before = resident(it.process.pid)
        it.ask({"bytes": size})
        assert it.reply()["resident"] * page > before + size / 2
        until = time.monotonic() + 30
        while resident(it.process.pid) > before + size / 2:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_what_it_has_no_use_for_is_not_imported() -> None:
    """Whoever waits for it, waits for that too."""
    told = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, check=True)
    assert told.stdout == b"False\n"
