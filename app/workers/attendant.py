"""What every process that the server starts does beside its work: the other side of `Child`."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.workers import protocol
from app.workers.channel import Message, messages, pack
from app.workers.memory import KEEP_S, give_back, keep_freed_memory

SACRIFICE = 1000
"""By how many thousandths of all memory this process seems larger than it is to a kernel that looks for one
to kill for want of memory; it is the most that there can be. With half of it the server was killed while
workers were left (in 300 MiB)."""

UNEXPECTED_STATUS = 70
"""What this process ends with after an error of ours, as `sysexits.h` has it."""

_SCORE = Path("/proc/self/oom_score_adj")


def attend(control_fd: int, answer: Callable[[Message], Message]) -> None:
    """Answer the server's messages until it is gone.

    The process ends when the server closes its end of the control socket, and so also when the
    server is killed, even in the middle of an answer.
    """
    control = socket.socket(fileno=control_fd)
    _watch_the_server(control)
    _die_first()
    keep_freed_memory()
    try:
        control.sendall(pack(protocol.ready()))
        for message in messages(control, KEEP_S, give_back):
            control.sendall(pack(answer(message)))
    except ConnectionError:
        return  # the server was gone before we were ready, or done
    except BaseException:  # noqa: BLE001 - told, and by another status than that of a library
        with suppress(OSError):  # where nobody reads the log
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(UNEXPECTED_STATUS)


def _die_first() -> None:
    """Be killed for want of memory before the server, which maps all that we map and so is the largest.

    With it all requests would be lost, with us none.
    """
    # Elsewhere than on Linux, or where a sandbox has no such file, the system decides by itself.
    with suppress(OSError):
        score = int(_SCORE.read_text()) + SACRIFICE
        _SCORE.write_text(str(min(score, SACRIFICE)))


def _watch_the_server(control: socket.socket) -> None:
    """End this process when the other side of the control socket is closed; if it runs, see `early`."""

    def watch() -> None:
        poll = select.poll()
        poll.register(control, select.POLLHUP)
        poll.poll()
        os._exit(0)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()
