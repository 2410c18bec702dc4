"""What a process of ours does first, before anything is imported that takes long or looks around."""

from __future__ import annotations

from collections.abc import MutableMapping

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
