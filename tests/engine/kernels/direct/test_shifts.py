"""Taps of the first axis as shifts, against gathered patches: values, seams, shares and what fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import Axis, strided_out
from engine.kernels.correlation import Correlation
from engine.kernels.direct import patch_sums, shifting, shifts
from tests.engine.kernels.images import Numbers, Pair, tensors

Case = tuple[Numbers, Numbers, Numbers, Numbers, Pair, int, int, int]
"""Sizes, kernel, strides, dilations, low and high padding, groups, channels, outputs."""

LAYERS: list[Case] = [
    ((90,), (9,), (1,), (1,), (4, 4), 1, 3, 5),
    ((41,), (4,), (3,), (2,), (0, 2), 2, 2, 3),
    ((23, 17), (5, 5), (2, 2), (1, 1), (3, 3), 1, 2, 16),
    ((12, 13), (3, 3), (1, 1), (1, 1), (1, 1), 8, 4, 4),
    ((14, 9), (3, 2), (2, 1), (3, 2), (2, 0), 3, 2, 17),
    ((8, 7, 9), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1), 1, 2, 16),
    ((9, 5, 6), (2, 1, 3), (2, 1, 2), (1, 1, 1), (0, 1), 2, 1, 2),
    ((6, 8), (3, 3), (1, 1), (1, 1), (-1, 2), 1, 2, 2),
]


def layer(case: Case, itemsize: int = 8) -> Correlation:
    sizes, kernel, strides, dilations, (low, high), groups, channels, outputs = case
    axes = tuple(
        Axis(n, k, s, d, low, high, strided_out(n, d * (k - 1) + 1, s, low, high))
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)
    )
    return Correlation(axes, groups, channels, outputs, "zeros", itemsize)


@pytest.fixture(params=["whole", "cut"])
def _seams(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With "cut", tiles of a few rows and products of a few positions, of which some are left over."""
    if request.param == "cut":
        monkeypatch.setattr(shifts, "PART_BYTES", 1 << 15)
        monkeypatch.setattr(shifting, "PART_BYTES", 1 << 15)
        monkeypatch.setattr(shifting, "SUMMED", 1 << 11)
        monkeypatch.setattr(shifting, "LEAST_ROWS", 1)
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cached in (shifting.plan, shifting.cuts, shifts._views):
        cached.cache_clear()


@pytest.mark.usefixtures("_seams")
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.parametrize("case", LAYERS)
def test_values(case: Case, bad: float | None) -> None:
    c = layer(case)
    assert shifts.suits(c)
    x, _, _, dy = tensors(c, 6)
    if bad is not None:
        x[(1, 0, 0, *(-1,) * len(c.axes))] = dy[(4, 0, 0, *(0,) * len(c.axes))] = bad
    rows = (2, 0, 1, 3)
    got, want = np.full((2, 4, c.groups, c.outputs, c.channels, *c.kernel), np.nan)
    with np.errstate(invalid="ignore"):
        shifts.backward_weight(c, x, dy, rows, got)
        patch_sums.backward_weight(c, x, dy, rows, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("_seams")
@pytest.mark.parametrize("in_place", [False, True])
def test_dy_is_turned_where_products_have_rows_for_it(
    in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few channels under many filters leave dy as it lies where BLAS multiplies in place."""
    monkeypatch.setattr(shifts, "multiplies_in_place", lambda: in_place)
    few, many = layer(LAYERS[2]), replace(layer(LAYERS[2]), channels=4)
    assert [shifts._turned(c) for c in (few, many)] == [not in_place, True]
    assert shifts._turned(replace(few, channels_last=True))
    assert not shifts._turned(replace(many, outputs=15))
    x, _, _, dy = tensors(few, 2)
    got, want = np.empty((2, 1, 1, few.outputs, few.channels, *few.kernel))
    shifts.backward_weight(few, x, dy, (2,), got)
    patch_sums.backward_weight(few, x, dy, (2,), want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "channels", "outputs", "shifted"),
    [
        (100, 3, 64, True),
        (100, 3, 192, False),
        (100, 8, 64, True),
        (128, 8, 64, False),
        (128, 8, 16, True),
        (128, 32, 64, True),
    ],
    ids=["few rows", "many results", "rows", "apart", "few planes", "many rows"],
)
def test_many_filters_over_few_channels_gather_patches(
    size: int, channels: int, outputs: int, shifted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where planes of dy share cache sets, or BLAS reads it slowly; with channels last neither matters."""
    monkeypatch.setattr(shifts, "multiplies_in_place", lambda: True)
    axis = Axis(size, 3, 1, 1, 1, 1, size)
    c = Correlation((axis, axis), 1, channels, outputs, "zeros", 4)
    assert shifts.pay(c) is shifted
    assert shifts.pay(replace(c, channels_last=True))


@pytest.mark.usefixtures("_seams")
def test_channels_last() -> None:
    c = layer(LAYERS[2])
    x, _, _, dy = (a if a.ndim < 5 else np.moveaxis(a, (1, 2), (-2, -1)) for a in tensors(c, 2))
    x, dy = (np.moveaxis(np.ascontiguousarray(a), (-2, -1), (1, 2)) for a in (x, dy))
    got, want = np.empty((2, 1, c.groups, c.outputs, c.channels, *c.kernel))
    shifts.backward_weight(c, x, dy, (2,), got)
    patch_sums.backward_weight(c, x, dy, (2,), want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("_seams")
def test_the_same_bits_whoever_comes_along() -> None:
    c = layer(LAYERS[2], itemsize=4)
    x, _, _, dy = tensors(c, 7)
    together = np.empty((2, c.groups, c.outputs, c.channels, *c.kernel), np.float32)
    shifts.backward_weight(c, x, dy, (2, 5), together)
    alone = np.empty_like(together[:1])
    shifts.backward_weight(c, x[2:], dy[2:], (5,), alone)
    assert alone.tobytes() == together[1:].tobytes()


def test_scratch_holds_every_block(asked: list[int]) -> None:
    """No part of the scratch is asked for more than it has."""
    for sizes, outputs in (((16, 56, 56), 32), ((224, 224), 64), ((100_000,), 64)):
        case = sizes, (3,) * len(sizes), (1,) * len(sizes), (1,) * len(sizes), (1, 1), 1, 8, outputs
        c = layer(case, itemsize=4)
        x, _, _, dy = tensors(c, 1)
        shifts.backward_weight(c, x, dy, (1,), np.empty((1, 1, outputs, 8, *c.kernel), np.float32))
    assert max(asked) <= PART_BYTES


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "reflect"},
        {"outputs": 1024},
        {"axes": (Axis(9, 1, 1, 1, 0, 0, 9),) * 2},
        {"axes": (Axis(9, 3, 4, 1, 0, 0, 2),) * 2},
        {"axes": (Axis(99, 3, 1, 1, 0, 0, 97), Axis(10**6, 90, 1, 1, 0, 0, 10**6 - 89))},
    ],
    ids=["padding", "large products", "one tap", "stride", "scratch"],
)
def test_others_are_left_to_others(
    change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shifting, "PART_BYTES", 1 << 14)
    _forget()
    c = layer(LAYERS[3])
    assert shifts.suits(c)
    assert not shifts.suits(replace(c, **change))  # type: ignore[arg-type]
    _forget()


@pytest.mark.parametrize("case", LAYERS)
def test_views_lie_in_the_scratch(case: Case) -> None:
    c, parts = layer(case), [arena.part(n, (PART_BYTES,), np.dtype(np.uint8)) for n in range(3)]
    for cut in shifting.cuts(c):
        v = shifts._views(c, cut.axes, 1, False)
        assert v is shifts._views(c, cut.axes, 1, False)
        made = [v.windows, v.upstream, *(a for _, found in v.products for p in found for a in p)]
        assert len(made) > 4
        assert all(any(np.may_share_memory(a, part) for part in parts) for a in made)
