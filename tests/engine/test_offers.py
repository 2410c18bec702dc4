"""Offered work: done once by who waits, or left to who cancels it."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from engine.offers import Offers


def test_what_is_offered_is_done_while_waiting() -> None:
    offers, other, caller = Offers(), Future[None](), threading.get_ident()
    seen: list[tuple[str, int]] = []

    def offer(name: str, *, pressing: bool) -> Future[None]:
        return offers.add(lambda: seen.append((name, threading.get_ident())), pressing=pressing)

    def work() -> None:
        for name in ("first", "second"):
            assert offer(name, pressing=False).result(10) is None
        other.set_result(None)

    thread = threading.Thread(target=work)
    thread.start()
    offers.serve([other])
    thread.join()
    assert seen == [("first", caller), ("second", caller)]


def test_only_what_is_pressing_is_done_at_once() -> None:
    offers = Offers()
    seen: list[int] = []
    offers.serve_pressing()
    some = [
        offers.add(lambda number=number: seen.append(number), pressing=number != 1)
        for number in range(4)
    ]
    assert some[2].cancel()
    offers.serve_pressing()
    assert seen == [0, 3]
    done = Future[None]()
    done.set_result(None)
    offers.serve([done])
    assert seen == [0, 3, 1]


def test_a_failure_is_for_who_offered_it() -> None:
    offers, failed = Offers(), Future[None]()
    failed.set_exception(ValueError())
    offered = offers.add(lambda: 1 // 0, pressing=False)
    offers.serve([failed])
    assert isinstance(offered.exception(), ZeroDivisionError)


def test_cancelled_offers_are_left() -> None:
    offers, done = Offers(), Future[None]()
    done.set_result(None)
    seen: list[int] = []
    assert offers.add(lambda: seen.append(0), pressing=False).cancel()
    offers.serve([done])
    assert not seen
