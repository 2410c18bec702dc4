"""Columns added up on planes of residues, against scattering: values, blocks, bad numbers, what fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, prod

import numpy as np
import pytest

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.direct import adjoints, folding, folds, gathered
from engine.kernels.products import LINE
from engine.kernels.slabs import row
from tests.engine.kernels.direct.test_shifts import LAYERS, Case, layer
from tests.engine.kernels.images import tensors


@pytest.fixture(params=["whole", "cut", "in parts"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With "cut", blocks of a few rows, and of a part of the channels; "in parts" also of some taps."""
    if request.param != "whole":
        monkeypatch.setattr(folds, "PART_BYTES", 1 << 17)
    if request.param == "in parts":
        whole = folds.plan.__wrapped__
        monkeypatch.setattr(folds, "MOST_PASSED", inf)
        monkeypatch.setattr(folding, "plan", lambda c: folds._in_parts(c) or whole(c))
    _forget()
    yield
    _forget()


def _forget() -> None:
    folds.plan.cache_clear()
    folding._views.cache_clear()


def both(x: np.ndarray, w: np.ndarray, dy: np.ndarray, case: Case) -> np.ndarray:
    """What folding and scattering write to an array of NaNs."""
    out = np.full((2, *x.shape), np.nan)
    with np.errstate(invalid="ignore"):
        folding.backward_input(layer(case), dy, w, out[0])
        gathered.backward_input(layer(case), dy, w, out[1])
    return out


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("case", LAYERS)
def test_values(case: Case) -> None:
    c = layer(case)
    assert folding.suits(c)
    x, w, _, dy = tensors(c)
    got, want = both(x, w, dy, case)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_blocks_are_cut_where_they_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "PART_BYTES", 1 << 17)
    _forget()
    plans = [(folds.plan(c), c) for c in map(layer, LAYERS)]
    assert any(p is not None and p.height < c.positions[0] for p, c in plans)
    assert any(p is not None and p.channels < c.channels for p, c in plans)
    _forget()


def test_taps_are_cut_where_they_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "MOST_PASSED", inf)
    found = [folds._in_parts(c) for c in map(layer, LAYERS)]
    assert sum(cut is not None for cut in found) > len(LAYERS) // 2
    # Parts that are not alike, and that begin further down.
    cuts = [
        folds.parts(layer(case).axes[0], cut.few)
        for case, cut in zip(LAYERS, found, strict=True)
        if cut
    ]
    assert any(len({p.last - p.first for p in own}) == 2 for own in cuts)
    assert any(own[-1].down > 1 for own in cuts)


LONG = [
    Correlation(
        (Axis(61, 41, 2, 1, 20, 20, 31), Axis(300, 11, 2, 1, 5, 5, 150)), 1, 1, 32, "zeros", 4
    ),
    Correlation(
        (Axis(9, 7, 2, 1, 3, 3, 5), *(Axis(47, 7, 2, 1, 3, 3, 24),) * 2), 1, 3, 64, "zeros", 4
    ),
    Correlation(
        (Axis(48, 31, 1, 1, 15, 15, 48), Axis(224, 31, 1, 1, 15, 15, 224)), 1, 2, 16, "zeros", 4
    ),
]


@pytest.mark.parametrize("c", LONG, ids=["image", "volume", "31x31"])
def test_many_taps_are_folded_some_at_a_time(c: Correlation) -> None:
    found = folds.in_parts(c)
    assert found is not None
    assert folds.sums(c, found) <= folds.MOST_SUMS
    assert adjoints.phases(c) == ()
    assert adjoints.scattering(c) is folding.backward_input
    x, w, _, dy = tensors(c, 2)
    wide = replace(c, itemsize=8)
    got, want = np.full_like(x, np.nan), np.empty(x.shape)
    folding.backward_input(c, dy, w, got)
    gathered.backward_input(wide, dy.astype("f8"), w.astype("f8"), want)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-3)
    assert not folding.suits(replace(c, outputs=20_000))


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case", LAYERS)
def test_bad_numbers_reach_what_they_are_added_to_and_nothing_else(case: Case, bad: float) -> None:
    x, w, _, dy = tensors(layer(case))
    clean = both(x, w, dy, case)[0]
    spoilt_w, spoilt_dy = w.copy(), dy.copy()
    spoilt_w[0, 1, -1] = bad
    spoilt_dy[(1, 0, 0, *(n // 2 for n in dy.shape[3:]))] = bad
    for got, want in (both(x, spoilt_w, dy, case), both(x, w, spoilt_dy, case)):
        assert not np.isfinite(want).all()
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    # The last sample has no bad number: it keeps every bit.
    assert got[2].tobytes() == clean[2].tobytes()


def test_scratch_holds_every_block(asked: list[int]) -> None:
    """No part of the scratch is asked for more than it has."""
    layers = (((224, 224), 7, 2), ((100_000,), 5, 1), ((40, 60, 50), 3, 2), ((9, 90, 90), 7, 2))
    for sizes, kernel, stride in layers:
        n = len(sizes)
        c = layer((sizes, (kernel,) * n, (stride,) * n, (1,) * n, (1, 1), 1, 3, 64), itemsize=4)
        x, w, _, dy = tensors(c, 1)
        folding.backward_input(c, dy, w, np.empty_like(x))
    assert max(asked) <= PART_BYTES


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "circular"},
        {"axes": (Axis(999, 3, 1, 1, 1, 1, 999),) * 2},
        {"axes": (Axis(9, 1, 2, 1, 0, 0, 5),) * 2},
    ],
    ids=["padding", "scratch", "residues without taps"],
)
def test_others_are_left_to_others(change: dict[str, object]) -> None:
    c = layer(LAYERS[3])
    assert folding.suits(c)
    assert not folding.suits(replace(c, **change))  # type: ignore[arg-type]


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("case", LAYERS)
def test_views_lie_in_the_scratch(case: Case) -> None:
    c, parts = layer(case), [arena.part(n, (PART_BYTES,), np.dtype(np.uint8)) for n in range(3)]
    v = folding._views(c, 1)
    assert v is folding._views(c, 1)
    made = [v.planes, v.upstream, *(plane for _, plane in v.moves)]
    made += [a for own in v.factors.values() for a in own]
    for rows in v.rows:
        made += [
            rows.outputs,
            rows.after,
            *rows.unused,
            *(a for sums in rows.sums for own in sums for a in own),
        ]
    assert len(made) > 8
    assert all(any(np.may_share_memory(a, part) for part in parts) for a in made if a.size)


def _tried(c: Correlation) -> tuple[int, int] | None:
    """Channels and rows of a block, found by trying all of them."""
    rows, capacity = tuple(map(row, c.axes)), PART_BYTES // c.itemsize
    steps = tuple(prod(r.width for r in rows[d + 1 :]) for d in range(len(rows)))
    reach = sum((r.width - n) * s for r, n, s in zip(rows, c.positions, steps, strict=True))
    plane = rows[0].width * steps[0] * prod(r.residues for r in rows)
    for channels in range(min(c.channels, capacity // plane), 0, -1):
        room = (capacity - reach) // (channels * c.taps) - reach - LINE
        height = min(room, capacity // c.outputs - LINE) // steps[0]
        if height >= min(c.positions[0], reach // steps[0] + 1):
            channels = -(-c.channels // -(-c.channels // channels))
            return channels, -(-c.positions[0] // -(-c.positions[0] // height))
    return None


def test_blocks_are_the_largest_that_fit() -> None:
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        channels, outputs = (int(n) for n in 2 ** rng.uniform(0, 14, 2))
        size, kernel, stride = (
            int(2 ** rng.uniform(3, 8)),
            int(rng.integers(1, 8)),
            int(rng.integers(1, 3)),
        )
        kernel = max(kernel, stride)
        axis = Axis(size, kernel, stride, 1, 0, 0, (size - kernel) // stride + 1)
        c = Correlation((axis, axis), 1, channels, outputs, "zeros", 4)
        found = folds._cut(c, kernel, channels, True)
        assert (None if found is None else (found.channels, found.height)) == _tried(c)
        outcomes.add(found is None)
    assert outcomes == {True, False}


def test_planning_does_not_go_through_channels() -> None:
    far = Axis(1, 1, 1, 1, 0, 0, 1)
    assert folds.plan(Correlation((far,), 1, 1 << 60, 30_000, "zeros", 4)) is None
