"""Threads of our own over blocks of work, with BLAS held to one thread each.

Blocks are fixed by the plan and write to disjoint places, so results do not depend on the number of
threads. BLAS's own threads would: they split a product by how many they are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from engine import blas
from engine.crew import Crew
from engine.errors import Stopped
from engine.offers import Offers
from engine.wakefulness import LINGER_S, Wakefulness, worth_it

MOST_THREADS = 4
"""Of one computation, unless more are asked for. After each of its calls of NumPy a thread waits for the
interpreter's lock: more than so many are often slower together."""

SMALL_FLOPS = 12_000_000
"""Below this much work, counted as operations of products, another thread costs more than it saves: by
the hand-over, and since both wait for the interpreter's lock after each of many short calls. So each
thread after the second wants as much again."""


def usable_cpus() -> int:
    """The CPUs that this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """How many threads one computation uses where nobody says otherwise."""
    return min(usable_cpus(), MOST_THREADS)


class _State(threading.local):
    stop: Callable[[], bool] | None = None
    offers: Offers | None = None
    offered: Offers | None = None


_local = _State()
_lock = threading.Lock()
_threads = default_threads()
_crew: Crew | None = None
_wakefulness = Wakefulness()
_wakeful = True


def set_threads(n: int) -> None:
    """Use up to `n` threads for one computation; by default a thread for each CPU that this process may
    use, and 4 at most, since more of them are seldom faster.

    Raises:
        TypeError: where `n` is no integer.
        ValueError: where it is less than 1.
    """
    global _threads, _crew
    if not isinstance(n, int | np.integer) or isinstance(n, bool):
        raise TypeError(f"the number of threads is an integer, not {n!r}")
    if n < 1:
        raise ValueError(f"the number of threads is at least 1, not {n}")
    with _lock:
        given_up = _crew if n != _threads else None
        if given_up is not None:
            _crew = None
        _threads = int(n)
    if given_up is not None:
        # Computations that have begun on these threads end there.
        given_up.close()
        _rest()


def set_wakeful(wakeful: bool) -> None:
    """Whether idle processors are kept awake while several threads compute, and 10 ms after.

    By default they are, where Linux grants it and the threads are at least half of the machine's
    processors. Threads that wait for each other then lose little by it; it takes power. No bit of a result
    depends on it.
    """
    global _wakeful
    with _lock:
        _wakeful = wakeful
        if not wakeful:
            _wakefulness.close()


def get_threads() -> int:
    """The number of threads that one computation uses."""
    return _threads


def samples_each(samples: int, most: int) -> int:
    """Samples of each of as few blocks of at most `most` as are alike, and as many for each thread."""
    threads = _threads
    blocks = -(-samples // (most * threads)) * threads
    return -(-samples // blocks)


def check_stop() -> None:
    """Raise Stopped if the caller asked for it."""
    if _local.stop is not None and _local.stop():
        raise Stopped


def for_each(
    function: Callable[..., None],
    blocks: Iterable[tuple[Any, ...]],
    flops: int,
    block_flops: int = 0,
    *,
    branches: bool = False,
    pressing: bool = False,
) -> None:
    """Call `function(*block)` for every block, on several threads where the work is worth it.

    Args:
        flops: of all blocks; worth it from SMALL_FLOPS on.
        block_flops: where a block has fewer, its calls are too short for threads to share the lock.
        branches: whether blocks share their own work among threads, those that are through included.
        pressing: whether in one of two branches that thread which does the other is to help at once.
    """
    blocks = list(blocks)
    least = max(SMALL_FLOPS, block_flops * len(blocks))
    if _threads == 1 or len(blocks) < 2 or flops < least:
        _work(function, iter(blocks))
        return
    queue, stop = iter(blocks), _local.stop
    offers = Offers() if branches else None
    # NumPy's error state and the function that is polled are a thread's own.
    worth = max(1, flops // max(1, SMALL_FLOPS))
    most = min(len(blocks) - 1, worth)
    helpers = _submit(lambda: _help(stop, function, queue, offers), most)
    offer = None
    if _local.offers is not None:
        offer = _local.offers.add(lambda: _work(function, queue), pressing=pressing)
    try:
        if offers is None:
            _work(function, queue)
        else:
            _branch(function, queue, offers, helpers)
    finally:
        if offers is not None:
            offers.left = True
        # A failure must not leave helpers writing into arrays that the caller gives up.
        for _ in queue:
            pass
        # Who has not begun has nothing left to do, and may come after the long work of others.
        failures = [helper.exception() for helper in helpers if not helper.cancel()]
        if offer is not None:
            failures.append(offer.withdraw())
    for failure in failures:
        if failure is not None:
            raise failure


def _branch(
    function: Callable[..., None],
    queue: Iterator[tuple[Any, ...]],
    offers: Offers,
    helpers: Sequence[Future[None]],
) -> None:
    """Do branches of a computation, and then what helpers offer of theirs."""
    while (block := _next(queue)) is not None:
        check_stop()
        _local.offered = offers
        try:
            function(*block)
        finally:
            _local.offered = None
    offers.serve(sum(not helper.cancel() for helper in helpers))


def _help(
    stop: Callable[[], bool] | None,
    function: Callable[..., None],
    queue: Iterator[tuple[Any, ...]],
    offers: Offers | None,
) -> None:
    """Do a helper's part of the work, and offer what can be shared of it."""
    # Not by who submits it: the program's signals may raise there at any moment, and nobody would let go.
    with _lock:
        if _wakeful and worth_it(_threads):
            _wakefulness.hold()
    _local.offers = offers
    try:
        computing(stop, _work, function, queue)
    finally:
        _local.offers = None
        if offers is not None:
            offers.end()


def _work(function: Callable[..., None], queue: Iterator[tuple[Any, ...]]) -> None:
    """Call `function` for what is left in a queue that others may read as well."""
    # Not in the midst of a block, whose numbers are in this thread's scratch.
    offered, _local.offered = _local.offered, None
    try:
        while (block := _next(queue)) is not None:
            if offered is not None:
                offered.serve_pressing()
            check_stop()
            function(*block)
    finally:
        _local.offered = offered


def _next(queue: Iterator[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    # A list's iterator hands out each item once, whichever thread asks.
    return next(queue, None)


def _submit(work: Callable[[], None], most: int) -> list[Future[None]]:
    """Have `work` done on our other threads, at most so many times; on fewer where no more can be had."""
    global _crew
    submitted: list[Future[None]] = []
    # Under the lock, so that nobody gives the threads up before they have the work.
    with _lock:
        if _crew is None:
            # One less, for the caller's own: where a helper is through but has not yet said so, another
            # would be started, and each keeps its scratch.
            helpers = max(1, _threads - 1)
            _crew = Crew(helpers, "convoke-engine", rest=_rest, linger_s=LINGER_S)
        for _ in range(min(_threads - 1, most)):
            submission = _crew.submit(work)
            if submission is None:
                break
            submitted.append(submission)
    return submitted


def _rest() -> None:
    """Let idle processors sleep, unless some thread of ours is at work."""
    with _lock:
        if _crew is None or not _crew.working:
            _wakefulness.let_go()


def _begin_anew() -> None:
    """A forked child has none of its parent's threads, and nobody who would give the lock back."""
    global _crew, _lock, _depth
    _crew, _lock, _depth = None, threading.Lock(), 0
    _wakefulness.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


_depth = 0
_outside = 1


@np.errstate(all="ignore")
def computing(stop: Callable[[], bool] | None, work: Callable[..., object], *args: Any) -> None:
    """Call `work(*args)` with BLAS held to one thread and no warnings, polling `stop` before its blocks.

    BLAS's setting of the program around us, and the `stop` of the call around this one, come back at the
    end.
    """
    global _depth, _outside
    before, _local.stop = _local.stop, stop
    found = blas.find()
    if found is not None:
        with _lock:
            if _depth == 0:
                _outside = found.get_threads()
                if _outside != 1:
                    found.set_threads(1)
            _depth += 1
    try:
        if found is not None and found.panels is not None:
            found.panels.prepare(_depth)
        work(*args)
    finally:
        _local.stop = before
        if found is not None:
            with _lock:
                _depth -= 1
                if _depth == 0 and _outside != 1:
                    found.set_threads(_outside)
