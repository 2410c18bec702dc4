"""Two branches of a computation: whoever is through shares the other, and stays out of its own blocks."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from engine import threads
from engine.errors import Stopped

MUCH = threads.SMALL_FLOPS


pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.mark.parametrize("pressing", [False, True])
@pytest.mark.parametrize("longer", [0, 1])
def test_who_is_through_with_a_branch_shares_the_other(longer: int, pressing: bool) -> None:
    begun, met = threading.Barrier(2, timeout=10), threading.Barrier(2, timeout=10)
    seen: list[list[int]] = [[], []]

    def block(branch: int, number: int) -> None:
        # The first two of the longer branch wait for each other.
        if branch == longer and number < 2:
            met.wait()
        seen[branch].append(number)

    def branch(number: int) -> None:
        begun.wait()
        blocks = [(number, i) for i in range(20 if number == longer else 3)]
        threads.for_each(block, blocks, MUCH, pressing=pressing)

    threads.for_each(branch, [(0,), (1,)], MUCH, branches=True)
    assert [sorted(each) for each in seen] == [
        [*range(20 if number == longer else 3)] for number in (0, 1)
    ]


def test_work_that_is_pressing_comes_before_the_next_block() -> None:
    """The caller has begun its branch when the helper offers its own, and there is more of both."""
    caller, begun, offered = threading.get_ident(), threading.Event(), threading.Event()
    seen: list[str] = []

    def own(number: int) -> None:
        begun.set()
        if number == 0:
            assert offered.wait(10)
        if threading.get_ident() == caller:
            seen.append("own")

    def other(_: int) -> None:
        offered.set()
        if threading.get_ident() == caller:
            seen.append("other")
            return
        while "other" not in seen:
            time.sleep(1e-3)

    def branch(blocks: Any) -> None:
        if threading.get_ident() != caller:
            assert begun.wait(10)
        threads.for_each(blocks, [(i,) for i in range(2)], MUCH, pressing=blocks is other)

    threads.for_each(branch, [(own,), (other,)], MUCH, branches=True)
    assert seen[:2] == ["own", "other"]


def test_work_that_is_pressing_does_not_come_into_the_midst_of_a_block() -> None:
    """A block that shares its own work has numbers in the scratch meanwhile."""
    caller, begun, offered = threading.get_ident(), threading.Event(), threading.Event()
    seen: list[str] = []

    def tell(what: str) -> None:
        if threading.get_ident() == caller:
            seen.append(what)

    def own(_: int) -> None:
        tell("begin")
        begun.set()
        assert offered.wait(10)
        threads.for_each(lambda _: tell("inner"), [(i,) for i in range(4)], MUCH)
        tell("end")

    def other(number: int) -> None:
        offered.set()
        tell("other")
        # The helper keeps its first block until the caller has had one of its own.
        while threading.get_ident() != caller and number == 0 and "other" not in seen:
            time.sleep(1e-3)

    def branch(name: str) -> None:
        if name == "own":
            threads.for_each(own, [(i,) for i in range(2)], 0)
        else:
            assert begun.wait(10)
            threads.for_each(other, [(i,) for i in range(9)], MUCH, pressing=True)

    threads.for_each(branch, [("own",), ("other",)], MUCH, branches=True)
    assert "other" in seen
    first = seen.index("other")
    assert seen[:first].count("begin") == seen[:first].count("end") > 0


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_in_a_shared_branch_is_raised(failing: int) -> None:
    def block(branch: int, number: int) -> None:
        if branch == failing and number == 17:
            raise ZeroDivisionError

    def branch(number: int) -> None:
        threads.for_each(block, [(number, i) for i in range(20)], MUCH)

    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            threads.for_each(branch, [(0,), (1,)], MUCH, branches=True)


def test_branches_stop() -> None:
    begun = threading.Event()

    def branch(_: int) -> None:
        begun.set()
        threads.for_each(lambda _: time.sleep(1e-3), [(i,) for i in range(10_000)], MUCH)

    with pytest.raises(Stopped):
        threads.computing(
            begun.is_set,
            lambda: threads.for_each(branch, [(0,), (1,)], MUCH, branches=True),
        )
