"""Reductions over windows along one axis, on the short path and on the long one."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import Stopped
from engine.geometry import Adaptive, Axis, Windows
from engine.kernels.windows import (
    PART,
    SHORT,
    plane_sum,
    window_argmax,
    window_max,
    window_spread,
    window_sum,
)
from engine.threads import computing

WINDOWS: list[Windows] = [
    Axis(9, 3, 1, 1, 1, 1, 9),
    Axis(9, 2, 3, 2, 0, 2, 3),
    Axis(5, 2, 2, 1, 4, 0, 4),  # the first two windows hold no input
    Axis(40, 30, 1, 1, 5, 9, 25),  # long
    Axis(40, 25, 20, 1, 30, 0, 3),  # long, the first window empty
    Axis(30, 26, 30, 1, 0, 0, 1),
    Axis(700, 300, 1, 2, 3, 5, 110),  # more taps than are listed
    Adaptive(10, 4),
    Adaptive(3, 7),
    Adaptive(8, 1),
]


def test_many_taps_stop_when_they_are_told_to() -> None:
    windows = Axis(2000, 900, 1, 2, 0, 0, 202)
    asked = iter((False, False, True))
    with pytest.raises(Stopped):
        computing(lambda: next(asked), window_sum, np.ones((1, 2000)), 1, windows, (0, 202), 0)
    assert list(asked) == []


def members(windows: Windows, o: int) -> list[int]:
    if isinstance(windows, Adaptive):
        return list(range(*windows.window(o)))
    taps = (windows.input_of(t, o) for t in range(windows.kernel))
    return [i for i in taps if 0 <= i < windows.size]


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@pytest.mark.parametrize("part", ["all", "tail"])
def test_max_sum_and_first_position(windows: Windows, part: str) -> None:
    rng = np.random.default_rng(3)
    lo, hi = (0 if part == "all" else windows.out // 2), windows.out
    start, stop = windows.inputs_of(lo, hi)
    x = rng.integers(-2, 3, (2, windows.size, 3)).astype(float)
    x[0, windows.size // 2, 1] = np.nan
    values = x[:, start:stop]
    best, found = window_argmax(
        values, np.arange(start, stop).reshape(-1, 1), 1, windows, (lo, hi), start
    )
    sums = window_sum(values, 1, windows, (lo, hi), start)
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
def test_spread_is_the_adjoint_of_the_sum(windows: Windows) -> None:
    rng = np.random.default_rng(4)
    span = (windows.out // 3, windows.out)
    start, stop = windows.inputs_of(*span)
    x = rng.standard_normal((2, stop - start, 3))
    g = rng.standard_normal((2, span[1] - span[0], 3))
    sums = window_sum(x, 1, windows, span, start)
    back = window_spread(g, 1, windows, span, (start, stop))
    np.testing.assert_allclose((sums * g).sum(), (x * back).sum(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "size", [(7, 7), (1, SHORT - 1), (1, SHORT), (PART // 64, 64), (3, PART), (113, 97)]
)
def test_the_sums_of_a_sample_do_not_depend_on_where_it_stands(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3, 5, *size)).astype(np.float32)
    sums = plane_sum(x)
    exact = x.astype(np.float64).sum((2, 3), keepdims=True)
    np.testing.assert_allclose(sums, exact, atol=1e-6 * np.abs(x).sum((2, 3)).max())
    for n in range(3):
        room = np.empty(x[n].size + 5, np.float32)
        for shift in range(5):
            alone = room[shift : shift + x[n].size].reshape(1, 5, *size)
            alone[...] = x[n]
            assert plane_sum(alone).tobytes() == sums[n].tobytes()
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    np.testing.assert_allclose(plane_sum(last), exact, atol=1e-6 * np.abs(x).sum((2, 3)).max())
