"""What a process of ours does first, before anything is imported that takes long or looks around."""

from __future__ import annotations

import os
import signal
from collections.abc import MutableMapping
from types import FrameType

OTHERS = ("OTEL_", "FASTAPI_", "PROMETHEUS_MULTIPROC_DIR", "WEB_CONCURRENCY")
"""How variables begin, in upper case, that libraries of ours read by themselves."""


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


def _leave(_number: int, _frame: FrameType | None) -> None:
    # What is being imported might catch an exception, or fail with it.
    os._exit(0)
