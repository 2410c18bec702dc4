"""Which way the gradient of an input goes, by integers alone; every way gives the same numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.geometry import Axis, strided_out
from engine.kernels.correlation import Correlation
from engine.kernels.direct import adjoints, folding, gathered
from engine.kernels.dispatch import correlate_input


def axis(size: int, kernel: int, stride: int, dilation: int, pad: int = 0) -> Axis:
    out = strided_out(size, dilation * (kernel - 1) + 1, stride, pad, pad)
    return Axis(size, kernel, stride, dilation, pad, pad, out)


PHASES = [
    Correlation((axis(56, 3, 1, 1, 1),) * 2, 1, 64, 64, "zeros", 4),
    Correlation((axis(56, 3, 2, 1, 1),) * 2, 1, 128, 128, "zeros", 4),
    # Many channels under one filter, taps apart: folded columns are nearly all zeros.
    Correlation((Axis(333, 31, 1, 12, 37, 0, 10),), 1, 196, 1, "zeros", 4),
]
SCATTERED = [
    # Inputs gather 20 numbers for one that is an output's.
    Correlation((axis(158, 32, 1, 4), axis(24, 2, 1, 3), axis(203, 5, 2, 38)), 1, 1, 2, "zeros", 4),
    Correlation((axis(46, 6, 1, 8), axis(20, 7, 1, 2)), 1, 4, 6, "zeros", 4),
    Correlation((axis(305, 4, 1, 95),), 1, 3, 5, "zeros", 8),
]


BESIDE = [
    Correlation((axis(224, 16, 16, 1),) * 2, 1, 3, 64, "zeros", 4),
    # A row and a column that no window reaches.
    Correlation((axis(9, 2, 2, 1), axis(22, 3, 3, 1)), 1, 3, 4, "zeros", 8),
    Correlation((axis(5, 1, 1, 1), axis(7, 4, 4, 1)), 1, 2, 3, "zeros", 4),
]

LONE = [
    Correlation((axis(8, 1, 2, 1),) * 2, 1, 6, 5, "zeros", 4),
    # Inputs beyond the last output, and a stride that no window needs.
    Correlation((axis(9, 1, 2, 1), axis(10, 1, 3, 2), axis(3, 1, 4, 1)), 1, 3, 4, "zeros", 8),
    Correlation((axis(7, 1, 2, 1, 1), axis(5, 1, 1, 1)), 1, 2, 3, "zeros", 8),
    Correlation((axis(6, 1, 2, 1),) * 2, 1, 1, 1, "zeros", 4),
]


def names(cases: list[Correlation]) -> list[str]:
    return ["x".join(str(a.size) for a in c.axes) for c in cases]


@pytest.mark.parametrize("c", PHASES, ids=names(PHASES))
def test_inputs_that_meet_outputs_gather(c: Correlation) -> None:
    assert adjoints.phases(c) == c.phases()


@pytest.mark.parametrize("c", SCATTERED, ids=names(SCATTERED))
def test_inputs_that_few_outputs_reach_are_scattered_to(c: Correlation) -> None:
    assert c.phases()
    assert adjoints.phases(c) == ()


@pytest.mark.parametrize("c", LONE, ids=names(LONE))
def test_one_tap_is_one_phase_beside_zeros(c: Correlation) -> None:
    found = adjoints.phases(c)
    assert found is not None
    assert sum(phase.correlation is not None for phase in found) == 1


def test_one_tap_of_many_phases_is_scattered() -> None:
    few, many = (Correlation((axis(64, 1, s, 1),) * 2, 1, 2, 3, "zeros", 4) for s in (8, 9))
    assert adjoints.phases(few)
    assert adjoints.phases(many) == ()


def test_depthwise_taps_that_lie_together_gather() -> None:
    for dilation, groups in ((2, 64), (4, 32)):
        c = Correlation((axis(112, 7, 1, dilation),) * 2, groups, 1, 1, "zeros", 4)
        assert adjoints.phases(c) == c.phases()


def test_phases_that_are_not_wanted_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Correlation, "phases", None)
    c = replace(SCATTERED[0], wanted="fastest")
    assert not adjoints.gathers(c)
    assert adjoints.phases(c) == ()


def test_many_phases_are_not_kept() -> None:
    few, many = (
        Correlation((axis(k * 16, 2 * k, k, 1),) * 2, 1, 21, 21, "zeros", 4, channels_last=True)
        for k in (8, 32)
    )
    assert adjoints.phases(few) is adjoints.phases(few)
    first, second = adjoints.phases(many), adjoints.phases(many)
    assert first is not None
    assert first == second
    assert first is not second
    # Windows are the same for most, so that what is worked out for one serves all.
    assert len({id(phase.correlation) for phase in first}) == 1


@pytest.mark.parametrize("outputs", [1, 256])
def test_more_phases_than_are_kept_gather_where_columns_would_be_more_work(outputs: int) -> None:
    """One output channel is gathered, and many are multiplied to columns of few taps."""
    c = Correlation((axis(240, 12, 12, 1), axis(240, 24, 12, 5, 6)), 1, 32, outputs, "zeros", 4)
    assert c.phase_count == 144
    assert adjoints.gathers(c) == (outputs == 1)


def test_groups_are_folded_one_by_one_and_so_only_where_they_are_few() -> None:
    """Folding begins anew for each group, which is most of it for a small one."""
    alone = Correlation((axis(28, 7, 2, 1, 3),) * 2, 1, 3, 16, "zeros", 4)
    assert adjoints.scattering(alone) is folding.backward_input
    assert not adjoints.gathers(alone)
    many = replace(alone, groups=64, outputs=8)
    assert adjoints.gathers(many)


def test_planes_that_few_columns_belong_to_are_not_folded() -> None:
    far = Correlation((axis(49, 7, 1, 6), axis(131, 6, 1, 24)), 1, 4, 16, "zeros", 4)
    close = Correlation((axis(64, 7, 2, 1, 3),) * 2, 1, 3, 64, "zeros", 4)
    # Taps lie together, but rows of 13 outputs are followed by 63 zeros.
    long = Correlation((axis(14, 1, 1, 1), axis(14, 64, 1, 1, 31)), 1, 8, 128, "zeros", 4)
    for c in (far, long):
        assert folding.suits(c)
        assert adjoints.scattering(c) is gathered.backward_input
    assert adjoints.scattering(close) is folding.backward_input


@pytest.mark.parametrize("c", BESIDE, ids=names(BESIDE))
def test_windows_side_by_side_are_laid_down(c: Correlation) -> None:
    assert c.disjoint
    assert adjoints.phases(c) == ()
    assert adjoints.scattering(c) is gathered.backward_input


def test_depthwise_windows_side_by_side_have_residues_where_taps_are_few_or_channels_last() -> None:
    few, many = (Correlation((axis(40, k, k, 1),) * 2, 9, 1, 1, "zeros", 4) for k in (2, 4))
    assert [adjoints.phases(c) == () for c in (few, many)] == [False, True]
    assert adjoints.phases(replace(many, channels_last=True))


@pytest.mark.parametrize(
    "axes",
    [
        (axis(8, 2, 2, 1, 1), axis(8, 2, 2, 1)),
        (axis(8, 3, 2, 1), axis(8, 2, 2, 1)),
        (axis(8, 2, 2, 2), axis(8, 2, 2, 1)),
        (Axis(7, 2, 2, 1, 0, 1, 4),) * 2,
        (axis(8, 1, 1, 1),) * 2,
    ],
    ids=["padding", "overlapping", "apart", "past the end", "1x1"],
)
def test_other_windows_are_not_side_by_side(axes: tuple[Axis, ...]) -> None:
    assert not Correlation(axes, 1, 2, 3, "zeros", 4).disjoint


def test_other_paddings_are_scattered() -> None:
    c = Correlation((axis(56, 3, 1, 1, 1),) * 2, 1, 64, 64, "reflect", 4)
    assert adjoints.phases(c) == ()
    assert adjoints.scattering(c) is gathered.backward_input


FEW = [PHASES[2], *SCATTERED[1:], *BESIDE[1:], *LONE]


@pytest.mark.parametrize("c", FEW, ids=names(FEW))
def test_every_way_gives_the_same_numbers(c: Correlation) -> None:
    rng = np.random.default_rng(0)
    dy = rng.standard_normal((2, 1, c.outputs, *c.positions)).astype(f"f{c.itemsize}")
    w = rng.standard_normal((1, c.outputs, c.channels * c.taps)).astype(dy.dtype)
    got = np.full((2, 1, c.channels, *(a.size for a in c.axes)), np.nan, dy.dtype)
    want = np.zeros(got.shape)
    taps = w[0].astype(np.float64).reshape(c.outputs, c.channels, *c.kernel)
    for out in np.ndindex(*c.positions):
        for tap in np.ndindex(*c.kernel):
            place: tuple[Any, ...] = tuple(
                a.input_of(t, o) for a, t, o in zip(c.axes, tap, out, strict=True)
            )
            if all(0 <= i < a.size for a, i in zip(c.axes, place, strict=True)):
                terms = dy[(slice(None), 0, slice(None), *out)] @ taps[(..., *tap)]
                want[(slice(None), 0, slice(None), *place)] += terms
    correlate_input(c, dy, w, got)
    tolerance = 1e-4 if c.itemsize == 4 else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
