"""Idle processors that are kept awake, for threads that often wait for each other.

The system halts a processor without work, and whoever wakes a thread there waits until it runs again: a
few microseconds on most machines, tens of them and now and then a millisecond on a virtual one, whose
host gave the halted processor to others. NumPy's threads wake each other after many of their calls, for
the interpreter's lock.

Linux grants short latencies on request: as long as a program holds ``/dev/cpu_dma_latency`` open and has
last written a latency of 0 microseconds there, idle processors watch for work (kernel documentation,
pm_qos_interface.rst). Unless its administrator says otherwise, nobody else may ask. The request ends with
the open file, however the program ends.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

DEVICE = Path("/dev/cpu_dma_latency")

LINGER_S = 0.01
"""For so long it is held after the work, as more may come."""

_AT_ONCE, _WHENEVER = struct.pack("=i", 0), struct.pack("=i", -1)


def worth_it(busy: int) -> bool:
    """Whether so many busy threads are most of this machine's; few are no reason to keep many from rest."""
    return 2 * busy >= (os.cpu_count() or 1)


class Wakefulness:
    """The request. Not to be used by several threads at once.

    The file is opened once and stays open, so that an exception of a signal, or a fork, in the middle of
    something can leave no second one behind, on which processors would be kept awake for ever.

    Args:
        device: the file that takes it.
    """

    def __init__(self, device: Path = DEVICE) -> None:
        self._device = device
        self._file: int | None = None
        self._denied = False
        self._held = False

    @property
    def held(self) -> bool:
        """Whether processors are kept awake by this request."""
        return self._held

    def hold(self) -> None:
        """Keep them awake from now on; where the system does not grant that, they sleep as ever."""
        if self._held or self._denied:
            return
        if self._file is None:
            try:
                self._file = os.open(self._device, os.O_WRONLY)
            except (PermissionError, FileNotFoundError):
                self._denied = True  # for good: to ask each time takes microseconds
                return
            except OSError:
                return
        self._held = True
        self._ask(self._file, _AT_ONCE)

    def let_go(self) -> None:
        """Keep them awake no more."""
        if self._held and self._file is not None:
            self._held = False
            self._ask(self._file, _WHENEVER)

    def close(self) -> None:
        """Give the request up; in a forked child, leave it to the parent, with whom it is shared."""
        file, self._file, self._held = self._file, None, False
        if file is not None:
            os.close(file)

    def _ask(self, file: int, latency: bytes) -> None:
        try:
            os.pwrite(file, latency, 0)
        except OSError:
            self.close()
