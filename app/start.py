"""What a process needs before it can serve: an address, open files, a thread or two.

Where the system does not grant them, one line says so.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address, ip_address

from app.settings import Settings


class CannotStart(Exception):
    """The service cannot begin; the message is one line, fit to be shown."""


@contextmanager
def granted() -> Iterator[None]:
    """Tell in a line of what the system does not grant.

    Raises:
        CannotStart: no more open files, memory or threads can be had.
    """
    try:
        yield
    except OSError as error:
        raise CannotStart(f"cannot start: {error}") from None
    except MemoryError:
        raise CannotStart("cannot start: no memory can be had") from None
    except RuntimeError as error:
        # A thread that cannot be started has no class of error of its own.
        if "can't start new thread" not in str(error):
            raise
        raise CannotStart("cannot start: no thread can be had") from None


def hear_signals() -> None:
    """Block no signal, as a program that started us may do: not the end of ours, nor of our processes."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def tell(line: str) -> None:
    """Write a line to standard output; nothing where nobody reads it, who would hold the service up."""
    with suppress(OSError):
        _, writable, _ = select.select([], [1], [], 0)
        if writable:
            os.write(1, f"{line}\n".encode())


def listen(settings: Settings) -> socket.socket:
    """A socket bound to the address.

    Raises:
        CannotStart: the address cannot be had.
    """
    try:
        family, kind, protocol, _, found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found)
        listener.setblocking(False)
    except (OSError, UnicodeError) as error:
        raise cannot_listen(settings, error) from None
    return listener


def cannot_listen(settings: Settings, error: OSError | UnicodeError) -> CannotStart:
    """Why an address cannot be had."""
    reason = error.strerror if isinstance(error, OSError) else "it is no name of a host"
    host = settings.host[:80].encode("ascii", "backslashreplace").decode()
    return CannotStart(f"cannot listen on {host}:{settings.port}: {reason}")


def address(listener: socket.socket) -> str:
    """The URL under which a bound socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def loopback(listener: socket.socket) -> bool:
    """Whether a bound socket is reached from this machine alone."""
    found = ip_address(listener.getsockname()[0].partition("%")[0])
    # Before Python 3.13 an IPv4 address within an IPv6 one is not looked at.
    inner = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (inner or found).is_loopback
