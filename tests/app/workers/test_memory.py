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

size = int(sys.argv[1])
memory.keep_freed_memory()

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
    thread.start()
    thread.join()
kept = resident()
print(faults() - before)
memory.give_back()
print(kept - resident())
"""


@pytest.mark.parametrize("size", [1 << 20, 25 << 20])
def test_pages_are_not_asked_for_again_on_any_thread_until_they_are_given_back(size: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(size)], capture_output=True, text=True, check=True
    )
    asked, given = map(int, done.stdout.split())
    # Where the kernel grants huge pages, a block that is asked for anew takes a few of them at least.
    assert asked < 100 * 6
    assert given > size / 2
