"""Who is answered in the event loop: only what is quick, and only while few ask."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from app import few
from app.few import (
    BRIEF,
    FEW,
    QUICK,
    SLOW_S,
    SLOW_TIMES,
    SMALL_BODY,
    WORKER_SLOW_S,
    Few,
    Size,
    within,
)

WEIGHT = (16, 3, 3, 3)


def call(
    operation: str = "conv", config: Any = None, dtype: str = "float32", **shapes: tuple[int, ...]
) -> tuple[engine.Call, int]:
    specs = {name: engine.TensorSpec(shape, dtype) for name, shape in shapes.items()}
    return engine.prepare(operation, "forward", config, specs)


SMALL = call(x=(1, 3, 8, 8), weight=WEIGHT)
MIDDLE = call(x=(1, 3, 40, 40), weight=WEIGHT)
LARGE = call(x=(1, 3, 200, 200), weight=WEIGHT)


@pytest.mark.parametrize("size", [QUICK, BRIEF])
def test_a_size_is_small_in_every_way(size: Size) -> None:
    def fits(config: Any = None, operation: str = "conv", **shapes: tuple[int, ...]) -> bool:
        return within(size, *call(operation, config, "float32", **shapes))

    def one_tap(count: int) -> bool:
        return fits({"kernel": 1}, "max_pool", x=(1, 1, count))

    products, passes = size
    # One channel in and 15 out: 64 bytes and 30 operations for each number.
    for count, fit in ((products.nbytes // 64 - 2, True), (products.nbytes // 64, False)):
        assert fits(x=(1, 1, count), weight=(15, 1, 1)) == fit
    for filters, fit in ((products.flops // 30720, True), (products.flops // 30720 + 1, False)):
        assert fits(x=(1, 16, 64 + 14), weight=(filters, 16, 15)) == fit
    assert one_tap(passes.nbytes // 8)
    assert not one_tap(passes.nbytes // 8 + 1)
    window = {"kernel": 400, "stride": 1}  # so long that it is no step for each tap
    for outputs, fit in ((passes.flops // 400, True), (passes.flops // 400 + 1, False)):
        assert fits(window, "avg_pool", x=(1, 1, outputs + 399)) == fit
    assert passes.flops < products.flops
    for most, config, operation, shapes in (
        (products.steps, None, "conv", {"weight": (1, 1, 1)}),
        (passes.steps, {"kernel": 1}, "max_pool", {}),
    ):
        assert fits(config, operation, x=(most, 1, 1), **shapes)
        assert not fits(config, operation, x=(most + 1, 1, 1), **shapes)
    for groups in (products.steps // 2, products.steps // 2 + 1):
        shapes = {"x": (2, groups, 4), "weight": (groups, 1, 1)}
        assert fits({"groups": groups}, "conv", **shapes) == (2 * groups <= products.steps)


def watched() -> Few:
    """One connection is there."""
    watch = Few()
    watch.enter(1, 1, "here")
    return watch


def test_only_few_are_let_in() -> None:
    watch = Few()
    assert not watch.admits(0, *SMALL, 1), "nobody is there"
    for connection in range(1, FEW + 1):
        watch.enter(connection, SMALL_BODY, "here")
        watch.enter(connection, 1, "here")
        assert watch.admits(connection, *SMALL, 1)
    assert not watch.admits(FEW + 1, *SMALL, 1), "not one of them"
    watch.enter(FEW + 1, 1, "here")
    assert not watch.admits(1, *SMALL, 1)
    watch.leave(2)
    watch.leave(2)
    assert watch.admits(1, *SMALL, 1)


def test_a_crowd_keeps_nobody_out_but_itself() -> None:
    watch = Few()
    crowd = range(100, 100 + FEW + 1)
    for connection in crowd:
        watch.enter(connection, 1, "there")
    assert watch.crowded
    assert watch.crowd("there")
    for connection in range(1, FEW + 1):
        watch.enter(connection, 1, "here" if connection % 2 else "elsewhere")
        assert watch.admits(connection, *SMALL, 100)
    assert not watch.crowd("here")
    assert not any(watch.admits(connection, *SMALL, 100) for connection in crowd)
    watch.enter(FEW + 1, 1, "a third")
    assert not watch.admits(1, *SMALL, 100), "they are many, if none of them is a crowd"
    watch.leave(FEW + 1)
    watch.leave(crowd[0])
    assert not watch.crowded, "but there are many"
    assert not any(watch.admits(connection, *SMALL, 100) for connection in (1, crowd[1]))
    for connection in crowd:
        watch.leave(connection)
    assert watch.admits(1, *SMALL, 100)


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from("abc"), st.booleans())))
def test_who_is_there_is_counted_as_they_come_and_go(
    moves: list[tuple[int, str, bool]],
) -> None:
    watch, there = Few(), dict[int, set[str]]()
    for connection, caller, comes in moves:
        if comes:
            watch.enter(connection, 1, caller)
            there.setdefault(connection, set()).add(caller)
        else:
            watch.leave(connection)
            there.pop(connection, None)
        counts = Counter(each for callers in there.values() for each in callers)
        assert watch.crowded == any(count > FEW for count in counts.values())
        few = sum(count for count in counts.values() if count <= FEW)
        for each, callers in there.items():
            crowds = [counts[its] > FEW for its in callers]
            assert [watch.crowd(its) for its in callers] == crowds
            assert watch.admits(each, *SMALL, 100) == (not any(crowds) and few <= FEW)


def test_what_is_asked_with_a_key_is_not_hidden_behind_a_request_without() -> None:
    for first, then in (("", "key-1"), ("key-1", "")):
        watch = Few()
        for connection in range(FEW + 1):
            watch.enter(connection, 1, first)
            watch.enter(connection, 1, then)
        assert watch.crowd("key-1")
        for connection in range(FEW + 1):
            watch.leave(connection)
        assert not watch.crowded


def test_while_little_is_under_way_more_is_answered_here() -> None:
    assert within(BRIEF, *MIDDLE)
    watch = watched()
    for under_way in (FEW, FEW + 1):
        watch.enter(1, 1, "here")
        assert watch.admits(1, *SMALL, under_way)
        assert not watch.admits(1, *LARGE, under_way)
        watch.enter(1, 1, "here")
        assert watch.admits(1, *MIDDLE, under_way) == (under_way == FEW)


def test_who_asks_much_in_few_bytes_keeps_nobody_out() -> None:
    watch = watched()
    for connection in range(2, 2 * FEW):
        watch.enter(connection, 1, "here")
    assert not watch.admits(1, *SMALL, 1)
    for connection in range(2, 2 * FEW):
        assert not watch.admits(connection, *LARGE, 1)
    assert watch.admits(1, *SMALL, 1)


def test_who_sends_nothing_or_much_is_no_company() -> None:
    watch = watched()
    for connection in range(2, 2 * FEW, 2):
        watch.enter(connection, 0, "here")
        watch.enter(connection + 1, SMALL_BODY + 1, "here")
    assert watch.admits(1, *SMALL, 1)


def test_what_is_slow_twice_in_a_row_is_left_to_workers() -> None:
    watch = watched()
    other = call(x=(1, 3, 9, 9), weight=WEIGHT)
    for seconds in (2 * SLOW_S, 0.5 * SLOW_S, *SLOW_TIMES * (2 * SLOW_S,)):
        assert watch.admits(1, *SMALL, 1)
        watch.took(*SMALL, seconds)
    assert not watch.admits(1, *SMALL, 1)
    assert watch.admits(1, *other, 1)


def test_workers_tell_what_is_slow_and_what_is_not() -> None:
    watch = watched()
    for seconds, slow in (
        (2 * WORKER_SLOW_S, False),
        (2 * WORKER_SLOW_S, True),
        (0.5 * (SLOW_S + WORKER_SLOW_S), True),
        (SLOW_S, False),
        *((0.5 * WORKER_SLOW_S, False),) * (SLOW_TIMES + 1),
    ):
        watch.worker_took(*SMALL, seconds)
        assert watch.slow(*SMALL) == slow
        assert watch.admits(1, *SMALL, 1) != slow


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SLOW_KINDS", 3)
    watch = watched()
    kinds = [call(x=(1, 3, size, size), weight=WEIGHT) for size in range(8, 12)]
    for kind in kinds:
        for _ in range(SLOW_TIMES):
            watch.took(*kind, 2 * SLOW_S)
    assert [watch.admits(1, *kind, 1) for kind in kinds] == [True, True, True, False]
