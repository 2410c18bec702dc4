"""What a process of ours does first, before anything is imported that takes long or looks around."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import MutableMapping
from types import FrameType

STANDARD_FILES = range(3)
"""Standard input, output and error."""

_PR_SET_PDEATHSIG = 1

OTHERS = ("OTEL_", "FASTAPI_", "PROMETHEUS_MULTIPROC_DIR", "WEB_CONCURRENCY")
"""How variables begin, in upper case, that libraries of ours read by themselves."""


def open_standard_files() -> None:
    """See that what is written to a standard file that was closed does not get into another.

    The system gives the lowest free number to what is opened next: a socket, memory with tensors, or a
    library that keeps its own file open.

    Raises:
        OSError: the null device cannot be opened.
    """
    for number in STANDARD_FILES:
        try:
            os.fstat(number)
        except OSError:
            # It gets this number, the lowest that is free; our processes write there, too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def forget_variables_of_others(environ: MutableMapping[str, str]) -> None:
    """Take what is meant for other programs out of the environment, and so out of our processes' too.

    Where a whole machine or cluster is set up by variables, ours has them as well. FastAPI's telemetry,
    which we do not use, cannot be imported where OTEL_PROPAGATORS names one that is not installed;
    Prometheus' client writes files where several processes count, and with us one does; uvicorn
    fails where WEB_CONCURRENCY is no number, and has one process here whatever it is.

    Args:
        environ: as `os.environ`.
    """
    for name in [name for name in environ if name.upper().startswith(OTHERS)]:
        del environ[name]


def end_with_server(control_fd: int) -> None:
    """Have the kernel end this process, which the server started, when the server is gone.

    A process that is stopped, or inside a call that holds the interpreter's lock, runs no thread that
    could watch.

    Args:
        control_fd: a socket whose other end nobody but the server has.
    """
    if sys.platform == "linux":
        # It is told when the thread ends that started us: the server's first, which ends with it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Of a server that was gone before, the kernel tells nobody; its end of the socket was closed first.
    poll = select.poll()
    poll.register(control_fd, select.POLLHUP)
    if poll.poll(0):
        os._exit(0)


def endings() -> list[signal.Signals]:
    """The signals that end the service; SIGHUP is none where it is ignored, as under nohup."""
    given = [signal.SIGTERM, signal.SIGINT]
    return given if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*given, signal.SIGHUP]


def leave_when_told() -> None:
    """End at once at such a signal, with status 0: until the server has its own way, nothing is served.

    By itself Python ends by the signal, or with a traceback from whatever it is importing.
    """
    for each in endings():
        signal.signal(each, _leave)


def mind_no_more() -> None:
    """Ignore them: all is done, and Python forgets our way before its end, so that one would end it."""
    for each in endings():
        signal.signal(each, signal.SIG_IGN)


def _leave(_number: int, _frame: FrameType | None) -> None:
    # What is being imported might catch an exception, or fail with it.
    os._exit(0)
