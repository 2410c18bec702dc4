"""Open files: enough for every connection that is let in, and for workers to be started beside them.

Many systems let a process have 1024 by itself and more if it asks. Without that, a crowd of idle
connections would keep a worker that died from being replaced.
"""

from __future__ import annotations

import logging
import resource
from contextlib import suppress
from dataclasses import replace

from app.places import LEAVING_CONNECTIONS
from app.settings import Settings
from app.start import CannotStart
from app.workers.berths import BERTHS
from app.workers.process import ARENAS

FILES_OF_SERVER = 64
"""The server's own: sockets it listens on, its loop's, its log, and what the interpreter opens."""

FILES_OF_WORKER = 2 * ARENAS + 6
"""A worker's arenas, each of which is mapped, its socket, and while it is started, what that needs."""

FILES_WITHOUT_WORKERS = 24
"""What a server takes at least: 14 of its own, a connection or two, and what starting a process needs."""

FILES_OF_SCRIBE = 3
"""A scribe's arena, which is mapped, and its socket."""

log = logging.getLogger(__name__)


def files_besides(settings: Settings) -> int:
    """Files that are needed besides those of the connections within the limit."""
    workers = settings.workers + 3  # and the express worker, and two scribes
    return FILES_OF_SERVER + 2 * BERTHS + FILES_OF_WORKER * workers + LEAVING_CONNECTIONS


def least_files(settings: Settings) -> int:
    """Files without which work would fail, or a worker that died could not be replaced."""
    if not settings.workers:
        return FILES_WITHOUT_WORKERS
    of_worker = 2 * ARENAS + 1
    workers = settings.workers + 1  # and the express worker
    # Those who are refused take files too, and a crowd of them would keep a new worker from starting.
    besides = FILES_WITHOUT_WORKERS + LEAVING_CONNECTIONS
    return besides + 2 * BERTHS + of_worker * workers + 2 * FILES_OF_SCRIBE


def with_files(settings: Settings) -> Settings:
    """Raise this process's limit on open files as far as needed.

    Returns:
        The settings, with fewer connections where the limit cannot be raised so far.

    Raises:
        CannotStart: it cannot be raised so far that anything would go well.
    """
    besides = files_besides(settings)
    needed = settings.max_connections + besides
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        # A system may name no limit and have one all the same, as macOS does.
        with suppress(ValueError, OverflowError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return settings
    least = least_files(settings)
    if soft < least:
        raise CannotStart(
            f"cannot start: {soft} files may be open, and with {settings.workers} workers"
            f" {least} are needed at least (see ulimit -n)"
        )
    connections = max(1, soft - besides)
    fields = {"files": soft, "max_connections": connections}
    log.warning("fewer connections than were set, for want of files", extra={"fields": fields})
    return replace(settings, max_connections=connections)
