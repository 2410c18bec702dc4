"""The machine: what it is, what it can do at most, and how many threads everybody uses.

Two limits: the rate of NumPy's own single-precision product of large square matrices, and the
bandwidth of copying memory that no cache holds.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import engine
from benchmarks.kernels import optional, pytorch
from benchmarks.kernels.timing import Peer
from engine.threads import default_threads, usable_cpus
from engine.wakefulness import DEVICE, worth_it

SIDE = 2048
"""Rows and columns of the matrices."""

COPIED = 64 << 20
"""Bytes of the array that is copied."""

SGEMM_FLOPS = 2 * SIDE**3
COPY_BYTES = 2 * COPIED
"""Bytes that a copy reads and writes."""


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let the engine, NumPy's BLAS and PyTorch use `n` threads each."""
    engine.set_threads(n)
    torch = optional.find("torch")
    if torch is not None:
        torch.set_num_threads(n)
    control = optional.find("threadpoolctl")
    if control is None:
        raise SystemExit("threadpoolctl is missing: install the project with its extra 'bench'")
    with control.threadpool_limits(n, user_api="blas"):
        yield
    engine.set_threads(default_threads())


def sgemm() -> Peer:
    """NumPy's product of two square matrices."""
    random = np.random.default_rng(0)
    a = random.standard_normal((SIDE, SIDE), np.float32)
    b = random.standard_normal((SIDE, SIDE), np.float32)
    out = np.empty_like(a)
    return Peer("sgemm", lambda: np.matmul(a, b, out=out))


@contextmanager
def copying(n: int) -> Iterator[Peer]:
    """A copy of memory, cut into one part for each of `n` threads."""
    source = np.ones(COPIED // 4, np.float32)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(target, n), np.array_split(source, n), strict=True))
    with ThreadPoolExecutor(n) as executor:
        yield Peer("copy", lambda: list(executor.map(lambda pair: np.copyto(*pair), parts)))


def describe(n: int) -> dict[str, str | int]:
    """What the figures belong to."""
    torch = optional.find("torch")
    awake = n > 1 and worth_it(n) and os.access(DEVICE, os.W_OK)
    return {
        "processor": _processor(),
        "cpus": usable_cpus(),
        "threads": n,
        "system": f"{platform.system()} {platform.machine()}",
        "idle processors": "kept awake by the engine" if awake else "as the system has them",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": _blas(),
        "pytorch": "not installed" if torch is None else pytorch.describe(torch),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _blas() -> str:
    control = optional.find("threadpoolctl")
    found = [] if control is None else control.threadpool_info()
    names = (
        f"{one['internal_api']} {one['version']} {one.get('architecture', '')}".strip()
        for one in found
        if one["user_api"] == "blas"
    )
    return ", ".join(sorted(set(names))) or "unknown"
