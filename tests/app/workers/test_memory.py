"""Freed memory is used again, and given back."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only there it can be asked for"
)

PROGRAM = """
import resource
import sys
import threading
import numpy as np
from app.workers import memory

keep, size = sys.argv[1], int(sys.argv[2])
getattr(memory, keep)()

def use():
    np.empty(size, np.uint8)[::4096] = 1

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

use()
before = faults()
for _ in range(50):
    use()
    thread = threading.Thread(target=use)
    if keep == "keep_freed_bodies":
        thread.start()
        thread.join()
kept = resident()
print(faults() - before)
memory.give_back()
print(kept - resident())
"""


def _run(keep: str, size: int) -> tuple[int, int]:
    """Pages asked for by 50 and more uses of a block after the first, and bytes given back."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, keep, str(size)], capture_output=True, text=True, check=True
    )
    asked, given = map(int, done.stdout.split())
    return asked, given


def test_the_pages_of_a_body_are_not_asked_for_again() -> None:
    asked, _ = _run("keep_freed_memory", 1 << 20)
    assert asked < 50 * 256 / 4


def test_those_of_a_large_body_are_not_either_on_any_thread_until_they_are_given_back() -> None:
    size = 25 << 20
    asked, given = _run("keep_freed_bodies", size)
    # Where the kernel grants huge pages, a block that is asked for anew takes a few of them at least.
    assert asked < 100 * 6
    assert given > size / 2
