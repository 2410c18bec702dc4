"""Offered work: done once by who waits, or left to who withdraws it; nobody waits for who has left."""

from __future__ import annotations

import signal
import threading
import time
from functools import partial

import pytest

from engine.errors import Stopped
from engine.offers import Offers


def test_what_is_offered_is_done_while_waiting() -> None:
    offers, caller = Offers(), threading.get_ident()
    seen: list[tuple[str, int]] = []

    def note(name: str) -> None:
        seen.append((name, threading.get_ident()))

    def work() -> None:
        for name in ("first", "second"):
            offer = offers.add(partial(note, name), pressing=False)
            while name not in dict(seen):
                time.sleep(1e-3)
            assert offer.withdraw() is None
        offers.end()

    thread = threading.Thread(target=work)
    thread.start()
    offers.serve(1)
    thread.join()
    assert seen == [("first", caller), ("second", caller)]


def test_only_what_is_pressing_is_done_at_once() -> None:
    offers = Offers()
    seen: list[int] = []
    offers.serve_pressing()
    some = [offers.add(partial(seen.append, n), pressing=n != 1) for n in range(4)]
    assert some[2].withdraw() is None
    offers.serve_pressing()
    assert seen == [0, 3]
    offers.end()
    offers.serve(1)
    assert seen == [0, 3, 1]
    assert [some[number].withdraw() for number in seen] == [None] * 3


def test_all_of_several_threads_are_waited_for() -> None:
    offers = Offers()
    ended: list[int] = []

    def work(number: int) -> None:
        time.sleep(0.02 * number)
        ended.append(number)
        offers.end()

    for number in range(3):
        threading.Thread(target=work, args=(number,)).start()
    offers.serve(3)
    assert sorted(ended) == [0, 1, 2]


def test_a_failure_is_for_who_offered_it() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    offers = Offers()
    offer = offers.add(fail, pressing=True)
    offers.serve_pressing()
    assert isinstance(offer.withdraw(), ZeroDivisionError)


def test_an_interruption_is_for_both() -> None:
    offers = Offers()

    def work() -> None:
        raise KeyboardInterrupt

    offer = offers.add(work, pressing=True)
    with pytest.raises(KeyboardInterrupt):
        offers.serve_pressing()
    assert isinstance(offer.withdraw(), KeyboardInterrupt)


def test_who_offers_waits_for_work_that_is_being_done() -> None:
    offers, begun = Offers(), threading.Event()
    seen: list[str] = []

    def work() -> None:
        begun.set()
        time.sleep(0.1)
        seen.append("done")

    offer = offers.add(work, pressing=True)
    thread = threading.Thread(target=offers.serve_pressing)
    thread.start()
    assert begun.wait(10)
    assert offer.withdraw() is None
    assert seen == ["done"]
    thread.join()


def test_nobody_waits_for_who_has_left_in_the_midst() -> None:
    """As where a signal comes between an offer's being taken and its work."""
    offers = Offers()
    offer = offers.add(lambda: None, pressing=True)
    assert next(offer._claims)
    threading.Timer(0.05, lambda: setattr(offers, "left", True)).start()
    assert isinstance(offer.withdraw(), Stopped)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals by a timer are needed")
def test_signals_at_any_moment_leave_nobody_waiting() -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        if armed:
            armed.clear()
            raise Interrupted

    armed: list[bool] = []
    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for delay in range(1, 1500):
            offers = Offers()
            offer = offers.add(lambda: None, pressing=True)
            withdrawn: list[BaseException | None] = []
            other = threading.Thread(target=lambda w=withdrawn, o=offer: w.append(o.withdraw()))
            try:
                try:
                    armed.append(True)
                    signal.setitimer(signal.ITIMER_REAL, delay % 300 * 1e-7 + 1e-6)
                    offers.serve_pressing()
                finally:
                    armed.clear()
            except Interrupted:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            offers.left = True
            other.start()
            other.join(10)
            assert withdrawn
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted
