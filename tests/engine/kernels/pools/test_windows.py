"""Reductions over windows along one axis, on the short path and on the long one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.errors import Stopped
from engine.geometry import Adaptive, Axis, Windows
from engine.kernels.pools import reducing
from engine.kernels.pools.pooling import Pooling, reduced_along
from engine.kernels.pools.spreading import window_sum_adjoint
from engine.kernels.pools.windows import (
    covered,
    passes,
    short,
    window_argmax,
    window_max,
    window_sum,
)
from engine.threads import computing

WINDOWS: list[Windows] = [
    Axis(9, 3, 1, 1, 1, 1, 9),
    Axis(9, 2, 3, 2, 0, 2, 3),
    Axis(5, 2, 2, 1, 4, 0, 4),  # the first two windows hold no input
    Axis(40, 30, 1, 1, 5, 9, 25),  # long, but many
    Axis(290, 200, 10, 1, 5, 15, 12),  # long
    Axis(40, 25, 20, 1, 30, 0, 3),  # long, the first window empty
    Axis(30, 26, 30, 1, 0, 0, 1),
    Axis(700, 300, 1, 2, 3, 5, 110),  # more taps than are listed
    Adaptive(10, 4),
    Adaptive(3, 7),
    Adaptive(8, 1),
]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (Axis(336, 25, 1, 1, 12, 12, 336), True),
        (Axis(104, 100, 1, 1, 0, 0, 5), False),  # a call for each tap is not worth it
        (Axis(4000, 250, 80, 1, 0, 0, 47), False),  # taps are far apart
        (Axis(4000, 300, 1, 1, 0, 0, 3701), False),  # more than are listed
        (Axis(100, 25, 25, 1, 0, 0, 4), False),  # nothing is shared
        (Axis(100, 25, 30, 2, 0, 0, 2), True),
    ],
    ids=str,
)
def test_long_windows_go_tap_by_tap_where_many_share_inputs(windows: Axis, expected: bool) -> None:
    assert short(windows) is expected
    assert passes(windows) == (windows.kernel if expected else 1)


def test_many_taps_stop_when_they_are_told_to() -> None:
    windows = Axis(2000, 900, 1, 2, 0, 0, 202)
    asked = iter((False, False, True))
    with pytest.raises(Stopped):
        computing(
            lambda: next(asked), window_sum, np.ones((1, 2000)), 1, windows, (0, 202), 0, False
        )
    assert list(asked) == []


def members(windows: Windows, o: int) -> list[int]:
    if isinstance(windows, Adaptive):
        return list(range(*windows.window(o)))
    taps = (windows.input_of(t, o) for t in range(windows.kernel))
    return [i for i in taps if 0 <= i < windows.size]


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@pytest.mark.parametrize("part", ["all", "tail"])
@pytest.mark.parametrize("beside", [0, 1024])
def test_max_sum_and_first_position(
    windows: Windows, part: str, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducing, "BESIDE", beside)
    monkeypatch.setattr(reducing, "FEWER", beside)
    rng = np.random.default_rng(3)
    lo, hi = (0 if part == "all" else windows.out // 2), windows.out
    start, stop = windows.inputs_of(lo, hi)
    x = rng.integers(-2, 3, (2, windows.size, 3)).astype(float)
    x[0, windows.size // 2, 1] = np.nan
    values = x[:, start:stop]
    best, found = window_argmax(
        values, np.arange(start, stop).reshape(-1, 1), 1, windows, (lo, hi), start
    )
    sums = window_sum(values, 1, windows, (lo, hi), start, False)
    np.testing.assert_array_equal(best, window_max(values, 1, windows, (lo, hi), start))
    for o in range(lo, hi):
        window = members(windows, o)
        for a, b in np.ndindex(2, 3):
            seen = x[a, window, b]
            expected = seen.max() if len(seen) else -np.inf
            np.testing.assert_equal(best[a, o - lo, b], expected)
            np.testing.assert_allclose(sums[a, o - lo, b], seen.sum(), atol=1e-12)
            if len(seen):
                assert found[a, o - lo, b] == window[int(np.argmax(seen))]


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@pytest.mark.parametrize("beside", [0, 1024])
def test_spread_is_the_adjoint_of_the_sum(
    windows: Windows, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducing, "BESIDE", beside)
    monkeypatch.setattr(reducing, "FEWER", beside)
    rng = np.random.default_rng(4)
    span = (windows.out // 3, windows.out)
    start, stop = windows.inputs_of(*span)
    x = rng.standard_normal((2, stop - start, 3))
    g = rng.standard_normal((2, span[1] - span[0], 3))
    sums = window_sum(x, 1, windows, span, start, False)
    back = window_sum_adjoint(g, 1, windows, span, (start, stop))
    np.testing.assert_allclose((sums * g).sum(), (x * back).sum(), rtol=1e-12, atol=1e-12)


@given(st.data())
def test_covered_are_the_members_of_any_window(data: st.DataObject) -> None:
    kernel, stride, dilation = (data.draw(st.integers(1, 7)) for _ in range(3))
    low, size = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 40))
    out = data.draw(st.integers(1, 12))
    axis = Axis(size, kernel, stride, dilation, low, 0, out)
    found = {axis.input_of(tap, output) for tap in range(kernel) for output in range(out)}
    lo = data.draw(st.integers(0, size - 1))
    hi = data.draw(st.integers(lo + 1, size))
    assert covered(axis, lo, hi).tolist() == [i in found for i in range(lo, hi)]


@pytest.mark.parametrize(
    ("kernels", "taken"), [((1, 2), [3]), ((2, 1), [2]), ((2, 2), [2, 3]), ((1, 1), [3])], ids=str
)
def test_axes_of_windows_of_one_input_take_no_step(
    kernels: tuple[int, int], taken: list[int]
) -> None:
    p = Pooling(tuple(Axis(6, k, k, 1, 0, 0, 6 // k) for k in kernels), 3)
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6))
    axes = []

    def step(values: np.ndarray, axis: int, *given: Any) -> np.ndarray:
        axes.append(axis)
        return window_max(values, axis, *given)

    tile = tuple((0, out) for out in p.positions)
    got = reduced_along(step, p, x, tile)
    assert axes == taken
    split = x.reshape(2, 3, p.positions[0], kernels[0], p.positions[1], kernels[1])
    np.testing.assert_array_equal(got, split.max(axis=(3, 5)))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5])
def test_windows_that_hold_columns_of_padding_alone(p: float, layout: str) -> None:
    x = np.ones((2, 3, 19, 2) if layout == "NCHW" else (2, 19, 2, 3))
    padding = [[0, 0], [2, 1]]
    config = {"kernel": [19, 2], "stride": [19, 4], "padding": padding, "p": p, "layout": layout}
    y = engine.forward("lp_pool", config, x=x)["y"]
    np.testing.assert_array_equal(y, np.zeros_like(y))
    dx = engine.backward("lp_pool", config, ["dx"], x=x, dy=np.ones_like(y))["dx"]
    np.testing.assert_array_equal(dx, np.zeros_like(x))
