"""What a process of ours does before all else: others' variables, standard files, and how it ends."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from app.early import forget_variables_of_others
from tests.serving import ROOT, serving

CONVOKE = "import sys; from app.cli import main; sys.exit(main())"
COMMANDS = {
    "python -m app": (sys.executable, "-m", "app"),
    "convoke serve": (sys.executable, "-c", CONVOKE, "serve"),
}


def ended(code: str, *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a program."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("propagators", ["b3", "nosuch"])
def test_variables_that_are_meant_for_others_have_no_effect(
    command: tuple[str, ...], propagators: str, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    others = {
        "OTEL_PROPAGATORS": propagators,
        "OTEL_PYTHON_CONTEXT": "nosuch",
        "PROMETHEUS_MULTIPROC_DIR": str(files),
        "prometheus_multiproc_dir": str(files),
        "WEB_CONCURRENCY": "auto",
    }
    log = tmp_path / "log"
    with serving(command, "--workers", "0", environ=others, log=log) as running:
        assert httpx.get(f"{running.url}/livez").status_code == 200
        assert 'action="none"' in httpx.get(f"{running.url}/metrics").text
    assert not [*files.iterdir()]
    assert "Traceback" not in log.read_text()


def test_what_is_ours_is_kept() -> None:
    ours = {"PATH": "/bin", "CONVOKE_PORT": "1", "PROMETHEUS_DISABLE_CREATED_SERIES": "1"}
    environ = ours | {"OTEL_SERVICE_NAME": "x", "prometheus_multiproc_dir": "/tmp"}
    forget_variables_of_others(environ)
    assert environ == ours


# It has the signal at the moment at which it begins to import a module.
TOLD = """
import signal, sys
from importlib.abc import MetaPathFinder

class Told(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            signal.raise_signal(int(sys.argv[2]))

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
sys.meta_path.insert(0, Told())
from app.cli import main
sys.exit(main(["serve", "--port", "0", "--workers", "0"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("module", ["numpy", "fastapi"])
def test_while_it_starts_it_ends_at_once_and_in_order(module: str, number: signal.Signals) -> None:
    assert ended(TOLD, module, str(int(number))) == (0, "", "")


# Libraries may open files for good as they are loaded, so it is looked at before NumPy is.
CLOSED = """
import os, sys
from importlib.abc import MetaPathFinder

class Looking(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "numpy":
            null = os.stat(os.devnull)
            same = [os.path.samestat(os.fstat(number), null) for number in range(3)]
            same += [os.get_inheritable(number) for number in range(3)]
            os._exit(0 if all(same) else 1)

for number in {closed}:
    os.close(number)
sys.meta_path.insert(0, Looking())
from app.cli import main
main(["serve", "--port", "0", "--workers", "0"])
"""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_a_standard_file_that_was_closed_is_nobody_elses(closed: tuple[int, ...]) -> None:
    null = subprocess.DEVNULL
    code = CLOSED.format(closed=closed)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=null,
        stdout=null,
        stderr=null,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0


def test_where_none_can_be_opened_one_line_says_so() -> None:
    code = f"import os; os.devnull = '/nowhere/null'; os.close(0); {CONVOKE}"
    why = "a standard file is closed, and /nowhere/null cannot be opened: No such file or directory"
    assert ended(code, "settings") == (1, "", f"convoke: {why}\n")


# A process of ours, to which something happens at the moment at which it begins to import NumPy.
BEGINNING = """
import os, runpy, signal, sys
from importlib.abc import MetaPathFinder

class Happening(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "numpy":
            {happens}

module = sys.argv.pop(1)
sys.meta_path.insert(0, Happening())
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""

# A server that starts it, tells its number once it is stopped, and waits to be killed.
SERVER = """
import os, signal, socket, subprocess, sys
code, module = sys.argv[1:]
ours, theirs = socket.socketpair()
command = [sys.executable, "-c", code, module, str(theirs.fileno()), "0", "1"]
process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
theirs.close()
os.waitpid(process.pid, os.WUNTRACED)
print(process.pid, flush=True)
signal.pause()
"""

OURS = pytest.mark.parametrize("module", ["app.workers.process_main", "app.scribe.__main__"])


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel ends it")
@OURS
def test_one_that_is_stopped_while_it_starts_ends_with_a_server_that_is_killed(module: str) -> None:
    code = BEGINNING.format(happens="os.kill(os.getpid(), signal.SIGSTOP)")
    command = [sys.executable, "-c", SERVER, code, module]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        stopped = os.pidfd_open(int(server.stdout.readline()))
        server.kill()
    try:
        poll = select.poll()
        poll.register(stopped, select.POLLIN)
        assert poll.poll(10_000)
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(stopped, signal.SIGKILL)
        os.close(stopped)


@OURS
def test_one_whose_server_is_gone_already_does_not_go_on(module: str) -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    code = BEGINNING.format(happens="os._exit(1)")
    with theirs:
        fd = theirs.fileno()
        command = [sys.executable, "-c", code, module, str(fd), "0", "1"]
        assert subprocess.run(command, cwd=ROOT, pass_fds=[fd], check=False).returncode == 0
