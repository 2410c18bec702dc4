"""Flat planes against gathered patches: values, edges, bad numbers, and what fits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.geometry import Axis, strided_out
from engine.kernels.correlation import Correlation
from engine.kernels.direct import flat, gathered, patch_sums, runs
from tests.engine.kernels.images import Numbers, Pair, tensors

Case = tuple[Numbers, Numbers, int, Pair, int, int, int]
"""Sizes, kernel, dilation, low and high padding, groups, channels, outputs."""

LAYERS: list[Case] = [
    ((9,), (3,), 1, (1, 1), 1, 2, 3),
    ((9, 7), (3, 2), 1, (1, 2), 2, 3, 2),
    ((8, 9), (3, 3), 2, (2, 0), 1, 2, 4),
    ((5, 8, 8), (2, 3, 2), 1, (0, 1), 3, 1, 2),
    ((16, 16), (5, 5), 1, (1, 1), 1, 6, 1),
    ((16, 16), (3, 3), 1, (1, 1), 2, 2, 3),
    ((4, 7, 6), (2, 2, 2), 1, (1, 0), 2, 2, 2),
]


def layer(case: Case, itemsize: int = 8) -> Correlation:
    sizes, kernel, dilation, (low, high), groups, channels, outputs = case
    axes = tuple(
        Axis(n, k, 1, dilation, low, high, strided_out(n, dilation * (k - 1) + 1, 1, low, high))
        for n, k in zip(sizes, kernel, strict=True)
    )
    return Correlation(axes, groups, channels, outputs, "zeros", itemsize)


PATCHES = SimpleNamespace(
    forward=gathered.forward,
    backward_input=gathered.backward_input,
    backward_weight=patch_sums.backward_weight,
)


def both(action: str, shape: tuple[int, ...], *given: object) -> np.ndarray:
    """What flat planes and gathered patches write to an array of NaNs."""
    out = np.full((2, *shape), np.nan)
    for kernel, written in zip((flat, PATCHES), out, strict=True):
        getattr(kernel, action)(*given, written)
    return out


@pytest.fixture(params=["several samples a block", "one sample a block"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "one sample a block":
        planned = runs.flat
        monkeypatch.setattr(
            flat, "flat", lambda c: replace(planned(c), samples=1, most=1, spread=1)
        )


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("case", LAYERS)
def test_values(case: Case) -> None:
    c = layer(case)
    assert flat.suits(c)
    x, w, bias, dy = tensors(c, 5)
    for offset in (bias, None):
        y = both("forward", dy.shape, c, x, w, offset)
        np.testing.assert_allclose(y[0], y[1], rtol=1e-12, atol=1e-12)
    dx = both("backward_input", x.shape, c, dy, w)
    np.testing.assert_allclose(dx[0], dx[1], rtol=1e-12, atol=1e-12)
    rows = (2, 0, 1, 2)
    shape = (len(rows), c.groups, c.outputs, c.channels, *c.kernel)
    dw = both("backward_weight", shape, c, x, dy, rows)
    np.testing.assert_allclose(dw[0], dw[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case", LAYERS)
def test_bad_numbers_reach_what_reads_them_and_nothing_else(case: Case, bad: float) -> None:
    c = layer(case)
    x, w, _, dy = tensors(c, 5)
    rows = (1,) * len(x)
    for place in ((2, 0, 0, *(0,) * len(c.axes)), (2, 0, 0, *(-1,) * len(c.axes))):
        spoilt_x, spoilt_dy, spoilt_w = x.copy(), dy.copy(), w.copy()
        spoilt_x[place] = spoilt_dy[place] = bad
        spoilt_w[0, 0, place[-1]] = bad
        shape = (len(rows), c.groups, c.outputs, c.channels, *c.kernel)
        with np.errstate(invalid="ignore"):
            y = both("forward", dy.shape, c, spoilt_x, w, None)
            dx = both("backward_input", x.shape, c, spoilt_dy, w)
            by_w = both("backward_input", x.shape, c, dy, spoilt_w)
            dw = both("backward_weight", shape, c, spoilt_x, dy, rows)
        assert not np.isfinite(y[1]).all()
        assert not np.isfinite(by_w[1]).all()
        for got, want in (y, dx, by_w, dw):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_bad_numbers_of_one_sample_change_no_bit_of_another() -> None:
    c = layer(LAYERS[1], itemsize=4)
    x, w, _, dy = tensors(c, 5)
    clean = np.arange(len(x)) != 2
    rows, shape = (1,) * len(x), (len(x), c.groups, c.outputs, c.channels, *c.kernel)

    def gradients() -> tuple[np.ndarray, np.ndarray]:
        dx, dw = np.empty_like(x), np.empty(shape, x.dtype)
        flat.backward_input(c, dy, w, dx)
        flat.backward_weight(c, x, dy, rows, dw)
        return dx, dw

    before = gradients()
    x[2, ..., -1] = dy[2, ..., 0] = np.inf
    with np.errstate(invalid="ignore"):
        after = gradients()
    for one, other in zip(before, after, strict=True):
        assert not np.isfinite(other[2]).all()
        assert one[clean].tobytes() == other[clean].tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "reflect"},
        {"axes": (Axis(9, 3, 2, 1, 1, 1, 5),) * 2},
        {"axes": (Axis(9, 3, 1, 1, -1, 1, 7),) * 2},
        {"axes": (Axis(99, 1, 1, 1, 0, 0, 99),) * 2},
        {"channels": 1 << 16},
    ],
    ids=["padding", "stride", "cut", "pointwise", "scratch"],
)
def test_others_are_left_to_others(change: dict[str, object]) -> None:
    c = layer(((9, 9), (3, 3), 1, (1, 1), 1, 2, 3))
    assert flat.suits(c)
    assert not flat.suits(replace(c, **change))  # type: ignore[arg-type]


def test_where_it_pays() -> None:
    c = layer(((9, 9), (3, 3), 1, (1, 1), 1, 2, 3))
    for pay in (flat.pay, flat.pay_for_input, flat.pay_for_weight, flat.pay_before_shifts):
        assert pay(c)
    few, many = flat.FEW_OUTPUTS + 1, flat.MOST_OUTPUTS + 1
    # A sample is the work of one thread.
    assert flat.pay(replace(c, channels=64, outputs=many))
    assert not flat.pay(replace(c, channels=64, outputs=2 * many))
    wide = replace(c, channels=30, outputs=few)
    assert flat.pay_for_weight(wide)
    assert not flat.pay_before_shifts(wide)
    assert not flat.pay_for_weight(replace(wide, channels=36))
    assert flat.pay_for_weight(replace(wide, channels=36, outputs=few - 1))
    assert not flat.pay_for_weight(replace(c, outputs=many))
    assert not flat.pay_for_input(replace(c, outputs=many))
    assert flat.pay_for_input(replace(c, outputs=many - 1))
    lone = replace(c, axes=(Axis(3, 3, 1, 1, 0, 0, 1),) * 2)
    assert flat.pay_for_weight(replace(lone, outputs=16))
    assert not flat.pay_for_weight(replace(lone, outputs=17))
    # Most columns of the gradient would belong to no output.
    sparse = replace(c, axes=(Axis(4, 3, 1, 1, 0, 0, 2), Axis(20, 18, 1, 1, 0, 0, 3)))
    assert flat.suits(sparse)
    assert not flat.pay_for_input(sparse)
    assert not flat.pay_before_shifts(sparse)
    long = replace(c, axes=(Axis(9, 3, 1, 1, 1, 1, 9), Axis(65, 3, 1, 1, 1, 1, 65)))
    assert flat.pay_for_weight(long)
    assert not flat.pay_before_shifts(long)
