"""The process: how it begins, and how it ends."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from app import server
from app.connection import Connection
from app.files import least_files
from app.routes.body import Intake
from app.server import TOGETHER_S, Server
from app.settings import Settings
from app.workers.memory import KEEP_S, LARGE_BYTES
from app.workers.turns import NICE
from benchmarks.stress.service import until
from benchmarks.stress.traffic import packed
from tests.app.talking import (
    COMMAND,
    MSGPACK,
    Raw,
    arrays,
    metric,
    noise,
    slow_body,
)
from tests.serving import ROOT, serving


def children(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(each) for each in listed.split()}


class Odd(Connection):
    """A connection of which it is noted when it was looked after."""

    def __init__(self, looked: list[str], name: str) -> None:
        self.looked, self.name = looked, name

    def expire(self, *_: float) -> None:
        look(self.looked, self.name)


def look(looked: list[str], name: str) -> None:
    looked.append(name)
    if name.startswith("broken"):
        raise ZeroDivisionError


@pytest.mark.parametrize("memory", ["sound memory", "broken memory"])
def test_one_that_cannot_be_looked_after_keeps_no_other_from_it(
    memory: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def two_rounds() -> None:
        sweeper = asyncio.create_task(rig._sweep())
        while len(looked) < 8:
            rig._large = -math.inf
            assert not sweeper.done()
            await asyncio.sleep(0)
        sweeper.cancel()

    looked: list[str] = []
    monkeypatch.setattr(server, "SWEEP_S", 0.0)
    monkeypatch.setattr(server, "LAST_READ_S", 0.0)
    monkeypatch.setattr(server, "give_back", lambda: look(looked, memory))
    rig = Server.__new__(Server)
    connections = [Odd(looked, "broken"), Odd(looked, "sound")]
    rig.server_state = SimpleNamespace(connections=connections)  # type: ignore[assignment]
    rig._intake = Intake(1)
    rig._berths = SimpleNamespace(tend=lambda: look(looked, "berths"))  # type: ignore[assignment]
    asyncio.run(asyncio.wait_for(two_rounds(), 60))
    assert looked[:8] == ["broken", "sound", memory, "berths"] * 2
    assert len(caplog.records) == (4 if memory.startswith("broken") else 2)
    assert "ZeroDivisionError" in caplog.text


def test_freed_memory_is_given_back_some_time_after_the_last_large_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[float] = []
    rig = Server.__new__(Server)
    rig._intake, rig._large = Intake(1), None
    for now, most in (
        (0, 1),
        (20, LARGE_BYTES),
        (21, LARGE_BYTES),
        (21 + KEEP_S, 1),
        (40, 1),
        (99, 1),
    ):
        monkeypatch.setattr(server, "give_back", lambda now=now: given.append(now))
        rig._intake.most = most
        rig._give_back(now)
        assert rig._intake.most == 0, "what is held"
    assert given == [40]


def test_sigterm_answers_what_is_under_way(tmp_path: Path) -> None:
    with serving(COMMAND, "--workers", "1", log=tmp_path / "log") as running:
        workers = children(running.process.pid)
        body = slow_body()
        with (
            httpx.Client(base_url=running.url, timeout=60) as client,
            ThreadPoolExecutor() as crowd,
        ):
            asked = [
                crowd.submit(client.post, "/v1/conv/forward", content=body, headers=MSGPACK)
                for _ in range(4)
            ]
            until(lambda: metric(client, "convoke_requests_in_flight") == 4)
            running.process.send_signal(signal.SIGTERM)
            until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
            # Refusing comes no sooner than computing what was let in.
            server, last = running.process.pid, min(os.nice(0) + NICE, 19)
            until(lambda: os.getpriority(os.PRIO_PROCESS, server) == last)
            late = httpx.post(f"{running.url}/v1/conv/forward", content=body, headers=MSGPACK)
            assert late.status_code == 503
            assert late.json()["type"] == "/problems/shutting-down"
            assert late.headers["Connection"] == "close"
            assert len({arrays(each.result())["y"].tobytes() for each in asked}) == 1
        assert running.process.wait(60) == 0
        assert running.process.stdout is not None
        assert running.process.stdout.read() == ""
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_service_ends_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with (
        serving(COMMAND, "--workers", "0", log=tmp_path / "log") as running,
        httpx.Client(base_url=running.url) as client,
    ):
        assert client.get("/livez").status_code == 200  # and the connection stays open
        running.process.send_signal(number)
        assert running.process.wait(60) == 0


# It is told to end when the first of its workers fails, which all of them do.
FAILING = """
import os, signal, sys
from app.cli import main
from app.workers.process import ProcessWorker
from app.workers.task import WorkerDied

told = []

async def start(worker):
    if not told:
        told.append(os.kill(os.getpid(), signal.SIGTERM))
    raise WorkerDied("crashed")

ProcessWorker.start = start
sys.exit(main(["serve", "--port", "0", "--workers", "1"]))
"""


def test_it_can_be_told_to_end_while_its_workers_fail_to_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr


def test_ctrl_c_once_more_does_not_wait(tmp_path: Path) -> None:
    with serving(COMMAND, "--workers", "1", log=tmp_path / "log") as running:
        workers = children(running.process.pid)
        with Raw(running.url) as raw:
            raw.send(b"POST /v1/conv/forward HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n")
            raw.send(b"Content-Type: application/msgpack\r\n\r\n")
            with httpx.Client(base_url=running.url) as client:
                until(lambda: metric(client, "convoke_requests_in_flight") == 1)
            running.process.send_signal(signal.SIGTERM)
            until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
            time.sleep(TOGETHER_S)
            running.process.send_signal(signal.SIGINT)
            running.process.wait(20)  # less than the drain may take
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_however_many_signals_come_the_status_is_0(tmp_path: Path) -> None:
    with serving(COMMAND, "--workers", "1", log=tmp_path / "log") as running:
        while running.process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                running.process.send_signal(number)
            time.sleep(0.0005)
        assert running.process.returncode == 0
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("apart", [0, TOGETHER_S], ids=["at once", "apart"])
def test_other_signals_change_nothing(tmp_path: Path, apart: float) -> None:
    with serving(COMMAND, "--workers", "0", log=tmp_path / "log") as running:
        with Raw(running.url) as raw:
            raw.send(b"POST /v1/conv/plan HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n")
            raw.send(b"Content-Type: application/json\r\n\r\n")
            with httpx.Client(base_url=running.url) as client:
                until(lambda: metric(client, "convoke_requests_in_flight") == 1)
            running.process.send_signal(signal.SIGTERM)
            time.sleep(apart)
            again = (signal.SIGTERM, signal.SIGHUP) if apart else (signal.SIGINT,)
            for number in again:
                running.process.send_signal(number)
            until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)
            raw.send(b'{"x": 1 }')
            assert raw.answer()[0].startswith(b"HTTP/1.1 4")
        assert running.process.wait(60) == 0
    assert "ending without waiting" not in (tmp_path / "log").read_text()


def test_an_address_in_use_is_refused_in_a_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*COMMAND, "--port", str(port)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"convoke: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_an_address_that_another_was_first_to_listen_on_is_refused_in_a_line() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with subprocess.Popen(
            [*COMMAND, "--port", str(port), "--workers", "1"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            until(children.read_text)  # its address is bound, and its worker starts
            other.listen()
            said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said == ("", f"convoke: cannot listen on 127.0.0.1:{port}: Address already in use\n")


@pytest.mark.parametrize(
    ("host", "keys", "warned"),
    [("0.0.0.0", "", True), ("127.0.0.1", "", False), ("0.0.0.0", "a-key", False)],
    ids=["to all", "to this machine", "with a key"],
)
def test_who_lets_everybody_in_is_told(tmp_path: Path, host: str, keys: str, warned: bool) -> None:
    log = tmp_path / "log"
    environ = {"CONVOKE_API_KEYS": keys}
    with serving(COMMAND, "--workers", "0", "--host", host, environ=environ, log=log) as running:
        assert httpx.get(f"{running.url}/livez").status_code == 200
    assert ("open to all who reach it" in log.read_text()) is warned


def test_who_is_not_done_at_the_end_is_told_and_no_failure_is_logged(tmp_path: Path) -> None:
    head = b"POST /v1/max_pool/forward HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n"
    body = packed({"kernel": 1}, x=noise(1, 1, 6 << 20))
    with (
        serving(
            COMMAND, "--workers", "1", "--drain-timeout-s", "0", log=tmp_path / "log"
        ) as running,
        Raw(running.url) as half,
        Raw(running.url) as deaf,
    ):
        half.send(head + b"Content-Length: %d\r\n\r\n" % (9 << 20) + bytes(1 << 20))
        deaf.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with httpx.Client(base_url=running.url) as client:
            until(lambda: "convoke_batch_requests_count" in client.get("/metrics").text)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0
        assert b" 503 " in half.rest()
    assert "Traceback" not in (tmp_path / "log").read_text()


LIMITED = """
import resource, sys
from app.cli import main
files, workers = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
sys.exit(main(["serve", "--port", "0", "--workers", workers]))
"""


@pytest.mark.parametrize(
    ("files", "workers"), [(10, 0), (23, 0), (16, 2), (24, 2), (32, 2), (40, 2), (158, 2), (147, 1)]
)
def test_too_few_files_are_told_in_a_line(files: int, workers: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(files), str(workers)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    least = least_files(Settings(workers=workers))
    assert done.stderr == (
        f"convoke: cannot start: {files} files may be open, and with {workers} workers"
        f" {least} are needed at least (see ulimit -n)\n"
    )


DEAF = """
import signal, sys
from app.cli import main
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
sys.exit(main(["serve", *sys.argv[1:]]))
"""


def test_signals_that_were_blocked_by_whoever_started_it_are_heard(tmp_path: Path) -> None:
    command = (sys.executable, "-c", DEAF)
    with serving(command, "--workers", "1", log=tmp_path / "log") as running:
        running.process.terminate()
        assert running.process.wait(60) == 0


# As a shell with a terminal starts it, even where the tests themselves run under nohup.
HEARING = """
import signal, sys
from app.cli import main
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.exit(main(["serve", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("ignored", [False, True], ids=["of a terminal", "under nohup"])
def test_the_end_of_a_terminal_is_an_orderly_end_unless_it_is_ignored(
    tmp_path: Path, ignored: bool
) -> None:
    command = ("nohup", *COMMAND) if ignored else (sys.executable, "-c", HEARING)
    with (
        serving(command, "--workers", "1", log=tmp_path / "log") as running,
        httpx.Client(base_url=running.url) as client,
    ):
        workers = children(running.process.pid)
        for pid in (*workers, running.process.pid, running.process.pid):
            os.kill(pid, signal.SIGHUP)
        if ignored:
            assert client.get("/readyz").status_code == 200
        else:
            assert running.process.wait(60) == 0
            assert "without waiting" not in (tmp_path / "log").read_text()
    assert workers
    assert "a worker ended" not in (tmp_path / "log").read_text()


def test_a_log_that_nobody_reads_stops_nobody() -> None:
    with subprocess.Popen(
        [*COMMAND, "--port", "0", "--workers", "0"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("CONVOKE_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with httpx.Client(base_url=url, timeout=60) as client:
            for _ in range(600):  # more lines than the pipe holds
                assert client.get("/livez").status_code == 200
        process.terminate()
        assert process.wait(60) == 0
        process.stderr.close() if process.stderr else None
