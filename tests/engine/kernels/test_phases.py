"""The adjoint by residues against the scatter it replaces."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from engine.geometry import Axis, strided_out
from engine.kernels.correlation import Correlation
from engine.kernels.direct import adjoints, gathered
from engine.kernels.dispatch import correlate_input
from engine.kernels.phases import residues


def axis(size: int, kernel: int, stride: int, dilation: int, low: int, high: int) -> Axis:
    out = strided_out(size, dilation * (kernel - 1) + 1, stride, low, high)
    return Axis(size, kernel, stride, dilation, low, high, out)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "low", "high"),
    [
        (9, 3, 1, 1, 1, 1),
        (9, 3, 1, 1, 4, 5),
        (9, 4, 2, 1, 1, 1),
        (10, 3, 2, 1, 0, 2),
        (11, 4, 3, 2, 2, 1),
        (12, 5, 4, 2, 3, 3),
        (8, 1, 2, 1, 0, 0),
        (7, 3, 6, 3, 5, 0),
    ],
)
def test_residues_are_every_pair_of_input_and_tap(
    size: int, kernel: int, stride: int, dilation: int, low: int, high: int
) -> None:
    """Each (input, tap, output) that the window joins is met by exactly one residue."""
    a = axis(size, kernel, stride, dilation, low, high)
    joined = {
        (a.input_of(tap, o), tap, o)
        for o, tap in product(range(a.out), range(kernel))
        if 0 <= a.input_of(tap, o) < size
    }
    met = []
    for residue in residues(a):
        inputs, taps = range(size)[residue.inputs], range(kernel)[residue.taps]
        if residue.window is None:
            continue
        assert residue.window.out == len(inputs)
        assert residue.window.kernel == len(taps)
        for place, (q, i) in product(range(len(taps)), enumerate(inputs)):
            o = residue.window.input_of(place, q)
            if 0 <= o < a.out:
                met.append((i, taps[place], o))
    assert sorted(met) == sorted(joined)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_phases_give_what_scattering_gives(stride: int, dilation: int) -> None:
    rng = np.random.default_rng(stride)
    axes = (axis(11, 4, stride, dilation, 2, 1), axis(9, 3, stride, dilation, 0, 2))
    c = Correlation(axes, 2, 3, 5, "zeros", 8)
    assert c.phases()
    dy = rng.standard_normal((2, 2, 5, *c.positions))
    w = rng.standard_normal((2, 5, 3 * c.taps))
    got, want = np.full((2, 2, 2, 3, 11, 9), np.nan)
    correlate_input(c, dy, w, got)
    gathered.backward_input(c, dy, w, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_many_phases_give_what_scattering_gives() -> None:
    """With numbers that are not finite, which meet zeros beside dy there."""
    rng = np.random.default_rng(0)
    c = Correlation((axis(240, 12, 12, 1, 0, 0), axis(240, 24, 12, 5, 6, 6)), 1, 32, 1, "zeros", 8)
    assert adjoints.gathers(c)
    dy = rng.standard_normal((2, 1, 1, *c.positions))
    w = rng.standard_normal((1, 1, 32 * c.taps))
    dy[1, 0, 0, 3, 4], w[0, 0, 700] = np.inf, np.nan
    got, want = np.full((2, 2, 1, 32, 240, 240), -7.0)
    correlate_input(c, dy, w, got)
    gathered.backward_input(c, dy, w, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_many_residues_or_other_paddings_have_no_phases() -> None:
    wide = axis(9000, 2000, 1025, 1, 0, 0)
    assert Correlation((wide,), 1, 1, 1, "zeros", 4).phases() == ()
    assert Correlation((axis(9, 3, 1, 1, 1, 1),), 1, 1, 1, "reflect", 4).phases() == ()
