"""How large files may be: shared memory is one to the system, so that `ulimit -f` counts for it."""

from __future__ import annotations

import resource

from app.main import cost_limits, desk_limits, dispatch_limits
from app.scribe.desk import letter_room
from app.settings import Settings
from app.staffing import arena_bytes
from app.start import CannotStart
from app.workers.berths import berth_bytes


def largest_file(settings: Settings) -> int:
    """Bytes of the largest arena that may be needed; without worker processes there is none."""
    if not settings.workers:
        return 0
    limits = dispatch_limits(settings, cost_limits(settings))
    rooms = (
        arena_bytes(limits),
        berth_bytes(limits.body_bytes),
        letter_room(desk_limits(settings)),
    )
    return max(rooms)


def allow_file_size(settings: Settings) -> None:
    """Raise this process's limit on the size of files where it is less than needed; ours inherit it.

    Raises:
        CannotStart: it cannot be raised so far; tensors would be refused for ever.
    """
    needed = largest_file(settings)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise CannotStart(
            f"cannot start: files may have {hard} bytes, and shared memory counts as files,"
            f" of up to {needed} bytes (see ulimit -f)"
        )
    # No further: it may be there for the log.
    resource.setrlimit(resource.RLIMIT_FSIZE, (needed, hard))
