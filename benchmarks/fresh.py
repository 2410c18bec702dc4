"""What layers take in a process that has computed nothing else: ``python -m benchmarks.fresh``.

Each case runs in new processes of its own, in turns with and without what `engine.panels` does first. The
other benchmarks compute many layers in one process, where BLAS's memory soon has its pages either way; a
worker that is asked for one layer again and again has only what that layer leaves.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from unittest.mock import patch

import engine
from benchmarks.kernels.cases import CASES, inputs
from benchmarks.kernels.tables import grid
from engine import blas
from engine.threads import get_threads

USUAL = ("res-64", "res-256", "res-512", "audio-1d", "mobile-dw", "lenet-2", "dcgan-deconv")
CALLS = 12
"""At least, of which the median counts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Time the cases and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fresh", description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=list(CASES), help="this case only; may be repeated"
    )
    parser.add_argument("--threads", type=int, default=get_threads(), help="of each computation")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each kind and case")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each of them, at least")
    parser.add_argument(
        "--one", nargs=3, metavar=("CASE", "ACTION", "TOUCHED"), help=argparse.SUPPRESS
    )
    given = parser.parse_args(arguments)
    engine.set_threads(given.threads)
    if given.one:
        name, action, touched = given.one
        print(timed(name, action, given.seconds, touched=touched == "yes"))
        return 0
    lines = []
    for name in given.case or USUAL:
        for action in ("forward", "backward"):
            rounds = [
                [_elsewhere(name, action, touched, given) for touched in ("no", "yes")]
                for _ in range(given.rounds)
            ]
            before, after = (median(times) for times in zip(*rounds, strict=True))
            times = [f"{1e3 * each:.3g}" for each in (before, after)]
            lines.append([name, action, *times, f"{before / after:.2f}"])
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(grid(["case", "action", "untouched ms", "touched ms", "ratio"], lines, markdown=False))
    return 0


def timed(name: str, action: str, seconds: float, *, touched: bool) -> float:
    """The median of a case's calls in this process, of which it should be the first work.

    Args:
        seconds: for which it is called again, at least.
        touched: whether BLAS's memory is touched first, as it is otherwise.
    """
    found = blas.find()
    if touched or found is None:
        return _timed(name, action, seconds)
    with patch.object(blas, "find", return_value=replace(found, panels=None)):
        return _timed(name, action, seconds)


def _timed(name: str, action: str, seconds: float) -> float:
    case = CASES[name]
    tensors = inputs(case.tensors(), action)
    compute: Callable[..., object] = engine.forward if action == "forward" else engine.backward
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < CALLS or time.perf_counter() < end:
        started = time.perf_counter()
        compute(case.operation, case.config, **tensors)
        times.append(time.perf_counter() - started)
    return median(times)


def _elsewhere(name: str, action: str, touched: str, given: argparse.Namespace) -> float:
    """`timed` in a new process."""
    limits = ["--threads", str(given.threads), "--seconds", str(given.seconds)]
    command = [sys.executable, "-m", "benchmarks.fresh", *limits, "--one", name, action, touched]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(told.stdout)


if __name__ == "__main__":
    sys.exit(main())
