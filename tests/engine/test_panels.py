"""BLAS's buffers have pages before they are used: as many as there are threads, each once."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine import blas, threads
from engine import panels as panels_module
from engine.panels import MOST_BUFFERS, TOUCHED_BYTES, Panels, panels_of

PROBE = """
import ctypes, mmap, threading
import numpy as np
import engine
from engine import blas, threads
from engine import panels as panels_module
from engine.panels import TOUCHED_BYTES

def resident():
    "How many of three buffers have pages behind all that is to be touched."
    panels = blas.find().panels
    held = [panels._take() for _ in range(3)]
    kept = []
    for address in held:
        told = (ctypes.c_ubyte * (TOUCHED_BYTES // mmap.PAGESIZE))()
        start = ctypes.c_void_p(address & -mmap.PAGESIZE)
        size = ctypes.c_size_t(TOUCHED_BYTES)
        assert ctypes.CDLL(None).mincore(start, size, told) == 0
        kept.append(all(page & 1 for page in told))
    for address in held:
        panels._give_back(address)
    return sum(kept)

x, w = np.ones((1, 3, 32, 32), np.float32), np.ones((16, 3, 3, 3), np.float32)
seen = [resident()]
engine.forward("conv", x=x, weight=w)
seen.append(resident())
engine.forward("conv", x=x, weight=w)
seen.append(resident())
met = threading.Barrier(2)
both = [threading.Thread(target=threads.computing, args=(None, met.wait)) for _ in range(2)]
for thread in both:
    thread.start()
for thread in both:
    thread.join()
seen.append(resident())
print(*seen)
"""


class Buffers:
    """Some buffers, as BLAS hands them out: the first that nobody uses."""

    def __init__(self, number: int) -> None:
        self.memory = [ctypes.create_string_buffer(b"\x01" * TOUCHED_BYTES) for _ in range(number)]
        self.used: set[int] = set()
        self.takes = 0

    def take(self) -> int:
        self.takes += 1
        free = (a for a in map(ctypes.addressof, self.memory) if a not in self.used)
        found = next(free, 0)
        if found:
            self.used.add(found)
        return found

    def give_back(self, address: int) -> None:
        self.used.remove(address)

    @property
    def touched(self) -> list[bool]:
        return [memory.raw[:TOUCHED_BYTES] == bytes(TOUCHED_BYTES) for memory in self.memory]


def test_as_many_buffers_as_callers_are_touched_once() -> None:
    buffers = Buffers(4)
    panels = Panels(buffers.take, buffers.give_back)
    panels.prepare(1)
    assert buffers.touched == [True, False, False, False]
    panels.prepare(3)
    assert buffers.touched == [True, True, True, False]
    takes = buffers.takes
    panels.prepare(3)
    panels.prepare(1)
    assert buffers.takes == takes
    assert not buffers.used


def test_a_buffer_in_use_is_left_alone() -> None:
    buffers = Buffers(3)
    panels = Panels(buffers.take, buffers.give_back)
    of_another = buffers.take()
    panels.prepare(1)
    assert buffers.touched == [False, True, False]
    buffers.give_back(of_another)
    panels.prepare(2)
    assert buffers.touched == [True, True, False]


def test_it_ends_where_there_is_no_other_buffer() -> None:
    buffers = Buffers(2)
    panels = Panels(buffers.take, buffers.give_back)
    panels.prepare(5)
    assert buffers.touched == [True, True]
    assert not buffers.used


def test_no_more_are_touched_than_is_said() -> None:
    buffers = Buffers(MOST_BUFFERS + 2)
    panels = Panels(buffers.take, buffers.give_back)
    panels.prepare(1000)
    assert sum(buffers.touched) == MOST_BUFFERS
    assert buffers.takes == MOST_BUFFERS * (MOST_BUFFERS + 1) // 2


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_none_is_asked_for_where_address_space_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(
        resource, "getrlimit", lambda what: (1 << 40 if what == resource.RLIMIT_AS else -1, -1)
    )
    buffers = Buffers(1)
    Panels(buffers.take, buffers.give_back).prepare(1)
    assert buffers.takes == 0


def test_an_interruption_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    used: list[int] = []
    panels = Panels(interrupted, lambda _: None)
    monkeypatch.setattr(blas, "find", lambda: blas.Blas(used.append, lambda: 4, "", panels))
    with pytest.raises(KeyboardInterrupt):
        threads.computing(None, lambda: None)
    assert used == [1, 4]
    assert threads._depth == 0


def test_others_than_those_known_are_left_alone() -> None:
    known = "OpenBLAS 0.3.31  USE64BITINT DYNAMIC_ARCH"
    functions = SimpleNamespace(blas_memory_alloc=lambda _: 0, blas_memory_free=lambda _: None)
    assert panels_of(cast(Any, functions), known) is not None
    assert panels_of(cast(Any, functions), "OpenBLAS 0.4.0") is None
    assert panels_of(cast(Any, functions), "") is None
    assert panels_of(cast(Any, SimpleNamespace()), known) is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which pages are there")
def test_a_computation_finds_its_buffer_ready() -> None:
    found = blas.find()
    if found is None or found.panels is None:
        pytest.skip("NumPy was built with another BLAS")
    if panels_module._bounded():
        pytest.skip("this process may have so much address space only")
    told = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    ).stdout
    assert told.split() == ["0", "1", "1", "2"]
