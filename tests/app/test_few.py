"""Who is answered in the event loop: only what is quick, and only while few ask."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from app import few
from app.few import FEW, PASSES, PRODUCTS, SLOW_S, SLOW_TIMES, SMALL_BODY, STEPS, Few, quick

WEIGHT = (16, 3, 3, 3)


def call(
    operation: str = "conv", config: Any = None, dtype: str = "float32", **shapes: tuple[int, ...]
) -> tuple[engine.Call, int]:
    specs = {name: engine.TensorSpec(shape, dtype) for name, shape in shapes.items()}
    return engine.prepare(operation, "forward", config, specs)


SMALL = call(x=(1, 3, 8, 8), weight=WEIGHT)
LARGE = call(x=(1, 3, 80, 80), weight=WEIGHT)


def test_what_is_quick_is_small_in_every_way() -> None:
    def products(size: int, weight: tuple[int, ...] = WEIGHT) -> bool:
        return quick(*call(x=(1, weight[1], size, size), weight=weight))

    def passes(count: int, kernel: int = 1) -> bool:
        return quick(*call("max_pool", {"kernel": kernel, "stride": 1}, x=(1, 1, count)))

    assert products(32)
    assert not products(64), "too many bytes"
    assert not products(16, (64, 32, 3, 3)), "too many operations"
    assert not products(8, (1, 1, 6, 6)), "too many steps"
    assert passes(PASSES.nbytes // 8)
    assert not passes(PASSES.nbytes // 8 + 1), "too many bytes"
    assert not passes(1000, 200), "too many operations"
    assert PASSES.flops < PRODUCTS.flops
    assert not quick(*call("max_pool", {"kernel": 1}, x=(STEPS + 1, 1, 1))), "too many steps"
    for groups in (STEPS // 2, STEPS // 2 + 1):
        shapes = {"x": (2, groups, 4), "weight": (groups, 1, 1)}
        assert quick(*call(config={"groups": groups}, **shapes)) == (2 * groups <= STEPS)


def watched() -> Few:
    """One connection is there."""
    watch = Few()
    watch.enter(1, 1)
    return watch


def test_only_few_are_let_in() -> None:
    watch = Few()
    assert not watch.admits(0, *SMALL), "nobody is there"
    for connection in range(1, FEW + 1):
        watch.enter(connection, SMALL_BODY)
        watch.enter(connection, 1)
        assert watch.admits(connection, *SMALL)
    assert not watch.admits(FEW + 1, *SMALL), "not one of them"
    watch.enter(FEW + 1, 1)
    assert not watch.admits(1, *SMALL)
    watch.leave(2)
    watch.leave(2)
    assert watch.admits(1, *SMALL)


def test_who_asks_much_in_few_bytes_keeps_nobody_out() -> None:
    watch = watched()
    for connection in range(2, 2 * FEW):
        watch.enter(connection, 1)
    assert not watch.admits(1, *SMALL)
    for connection in range(2, 2 * FEW):
        assert not watch.admits(connection, *LARGE)
    assert watch.admits(1, *SMALL)


def test_who_sends_nothing_or_much_is_no_company() -> None:
    watch = watched()
    for connection in range(2, 2 * FEW, 2):
        watch.enter(connection, 0)
        watch.enter(connection + 1, SMALL_BODY + 1)
    assert watch.admits(1, *SMALL)


def test_what_is_slow_twice_in_a_row_is_left_to_workers() -> None:
    watch = watched()
    other = call(x=(1, 3, 9, 9), weight=WEIGHT)
    for seconds in (2 * SLOW_S, 0.5 * SLOW_S, *SLOW_TIMES * (2 * SLOW_S,)):
        assert watch.admits(1, *SMALL)
        watch.took(*SMALL, seconds)
    assert not watch.admits(1, *SMALL)
    assert watch.admits(1, *other)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SLOW_KINDS", 3)
    watch = watched()
    kinds = [call(x=(1, 3, size, size), weight=WEIGHT) for size in range(8, 12)]
    for kind in kinds:
        for _ in range(SLOW_TIMES):
            watch.took(*kind, 2 * SLOW_S)
    assert [watch.admits(1, *kind) for kind in kinds] == [True, True, True, False]
