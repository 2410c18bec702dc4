"""Maxima of windows that are long or differ, and where they stand, looked for axis by axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.errors import Stopped
from engine.geometry import Adaptive, Axis, Tile, Windows, tiles
from engine.kernels.pools import maxima, seeking
from engine.kernels.pools.pooling import Pooling
from engine.threads import computing
from tests.engine.kernels.maxima import check_answers, drawn, layer
from tests.engine.reference import pools

pytestmark = pytest.mark.usefixtures("sharing")

POSITIONS = {"return_indices": True}

ADAPTIVE: list[tuple[tuple[int, ...], list[int]]] = [
    ((2, 16, 17, 16), [5, 7]),
    ((3, 66, 28, 11), [5, 3]),
    ((2, 3, 80, 74), [2, 3]),
    ((2, 33, 14, 13), [7, 5]),
    ((2, 20, 700), [3]),
    ((2, 17, 6, 17, 8), [4, 5, 3]),
]

FIXED: list[tuple[tuple[int, ...], list[int], dict[str, Any]]] = [
    ((2, 9, 60, 40), [26, 25], {"stride": [13, 15]}),
    ((2, 9, 60, 40), [30, 4], {"stride": [15, 3], "dilation": [1, 5], "padding": [9, 3]}),
    # The first window and the last hold padding alone.
    ((2, 3, 200), [40], {"stride": 80, "padding": [[40, 90]]}),
    ((2, 3, 40, 200), [25, 25], {"stride": [20, 80], "padding": [[30, 0], [25, 25]]}),
]


def whole(p: Pooling) -> Tile:
    return tuple((0, out) for out in p.positions)


def test_what_suits() -> None:
    def suits(axes: tuple[Windows, ...], channels: int = 64, *, last: bool = False) -> bool:
        p = Pooling(axes, channels, last)
        return seeking.suits(p, whole(p))

    unlike = Adaptive(28, 5), Adaptive(28, 5)
    assert suits(unlike)
    assert suits(unlike, last=True)
    assert suits((Axis(28, 2, 2, 1, 0, 0, 14), Adaptive(28, 5)))
    assert suits((Axis(290, 200, 10, 1, 5, 15, 12),))
    # Fewer numbers are rather looked at all together.
    assert not suits(unlike, 1)
    assert not suits((Adaptive(1000, 400),))
    # There would be more positions than inputs.
    assert not suits((Adaptive(28, 5), Adaptive(20, 22)))
    assert suits((Axis(115, 20, 20, 1, 0, 0, 5),) * 2)


@pytest.mark.parametrize(
    ("kernel", "left", "few"), [(11, 0, True), (12, 0, False), (16, 3, True), (17, 3, False)]
)
def test_which_taps_are_looked_at_one_by_one(kernel: int, left: int, few: bool) -> None:
    p = Pooling((Axis(5 * kernel + left, kernel, kernel, 1, 0, 0, 5),) * 2, 8, False)
    assert bool(p.tapped_axes) == few


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "outs"), ADAPTIVE, ids=str)
def test_windows_that_differ_answer_as_the_reference(
    shape: tuple[int, ...],
    outs: list[int],
    dtype: str,
    numbers: str,
    last: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeking, "WORTH", 0)
    config, x, dy = layer(
        {"output_size": outs, **POSITIONS}, shape, outs, dtype, numbers, last=last
    )
    want = pools.adaptive_max_forward(config, {"x": x})
    want |= pools.adaptive_max_backward(config, {"x": x, "dy": dy})
    check_answers("adaptive_max_pool", config, x, dy, want)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_halves_and_integers_answer_as_the_reference(
    dtype: str, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeking, "WORTH", 0)
    shape, outs = (3, 66, 28, 11), [5, 3]
    config, x, dy = layer(
        {"output_size": outs, **POSITIONS}, shape, outs, "float32", "distinct", last=last
    )
    x = (3 * x).astype(dtype)
    dy = dy.astype("float16" if dtype == "float16" else "float32")
    want = pools.adaptive_max_forward(config, {"x": x})
    want |= pools.adaptive_max_backward(config, {"x": x, "dy": dy})
    check_answers("adaptive_max_pool", config, x, dy, want)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
@pytest.mark.parametrize(("shape", "kernel", "more"), FIXED, ids=str)
def test_long_windows_answer_as_the_reference(
    shape: tuple[int, ...],
    kernel: list[int],
    more: dict[str, Any],
    numbers: str,
    last: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeking, "WORTH", 0)
    config = {"kernel": kernel, **more}
    outs = list(pools.max_forward(config, {"x": np.zeros(shape)})["y"].shape[2:])
    config, x, dy = layer(config | POSITIONS, shape, outs, "float32", numbers, last=last)
    want = pools.max_forward(config, {"x": x})
    want |= pools.max_backward(config, {"x": x, "dy": dy})
    check_answers("max_pool", config, x, dy, want)


@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
@pytest.mark.parametrize("run", [0, 1 << 40], ids=["where they lie", "laid out"])
@pytest.mark.parametrize("part", [1, 300, 1 << 20])
def test_all_ways_find_the_same(
    part: int, run: int, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, x = Pooling((Adaptive(24, 5), Adaptive(54, 7)), 3), drawn((2, 3, 24, 54), "float32", numbers)
    want = maxima._along(p, x, whole(p))
    monkeypatch.setattr(seeking, "PASS", part)
    monkeypatch.setattr(seeking, "BESIDE_RUN", run)
    for got, expected in zip(seeking.sought(p, x, whole(p)), want, strict=True):
        np.testing.assert_array_equal(got, expected)
    for tile in tiles(p.positions, (2, 3)):
        own: tuple[Any, ...] = (..., *(slice(*span) for span in tile))
        for got, expected in zip(seeking.sought(p, x, tile), want, strict=True):
            np.testing.assert_array_equal(got, expected[own])


@pytest.mark.parametrize("sizes", [(254, 1), (255, 1), (256, 1), (15, 17), (16, 16), (260, 255)])
def test_the_last_of_as_many_members_as_an_integer_counts_is_found(sizes: tuple[int, int]) -> None:
    p = Pooling(tuple(Axis(size, size, size, 1, 0, 0, 1) for size in sizes), 1)
    x = np.zeros((1, 1, *sizes), np.float32)
    for place in (x.size - 1, x.size - 2, 0):
        x[...] = 0
        x.reshape(-1)[place] = 1
        assert seeking.sought(p, x, whole(p))[1].item() == place


def test_the_search_in_a_large_window_stops_when_it_is_told_to() -> None:
    asked = iter((*(False,) * 3, True))
    p, x = Pooling((Axis(10**7, 10**7, 10**7, 1, 0, 0, 1),), 1), np.ones((1, 1, 10**7), np.float32)
    with pytest.raises(Stopped):
        computing(lambda: next(asked), seeking.sought, p, x, whole(p))
    assert list(asked) == []
