"""Rows of a slab hold what each tap reads, in order."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.geometry import Axis, strided_out
from engine.kernels import slabs
from engine.kernels.slabs import row


@given(st.data())
def test_every_tap_reads_its_inputs_or_padding(data: st.DataObject) -> None:
    size, kernel = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 6))
    stride, dilation = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 3))
    low = data.draw(st.integers(-3, 6))
    high = data.draw(st.integers(max(0, dilation * (kernel - 1) + 1 - size - low), 20))
    out = strided_out(size, dilation * (kernel - 1) + 1, stride, low, high)
    axis = Axis(size, kernel, stride, dilation, low, high, out)
    laid, x = row(axis), np.arange(1, size + 1)
    slab = np.zeros((laid.residues, laid.width), np.int64)
    for residue, place, inputs in laid.moves:
        slab[residue, place] = x[inputs]
    seen = {}
    for t in laid.taps:
        for number, tap in enumerate(range(kernel)[t.taps]):
            begin = t.first + number * t.step
            seen[tap] = slab[t.residue, begin : begin + out].tolist()
    for tap in range(kernel):
        at = [axis.input_of(tap, o) for o in range(out)]
        assert seen[tap] == [i + 1 if 0 <= i < size else 0 for i in at]


def test_a_stride_beyond_the_inputs_takes_no_more_work_than_they_do() -> None:
    """Visited residue by residue, it would keep a service busy for hours by a request of some bytes."""
    stride = 2**62
    places = ((1, 0), (2, 1), (3, 2))
    moves = tuple((residue, slice(0, 1), slice(i, i + 1, stride)) for residue, i in places)
    assert row(Axis(3, 2, stride, 1, 1, 0, 1)).moves == moves


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("little", [slabs.LITTLE, False])
def test_copies_are_all_of_what_was_asked_and_nothing_else(
    dtype: str, step: int, little: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slabs, "LITTLE", little)
    for size, first in combinations(range(9, -1, -1), 2):
        source = np.random.default_rng(size).standard_normal((3, 2, size)).astype(dtype)
        apart = np.repeat(source, 2, axis=-1)[..., ::2]
        for last in range(first + 1, size + 1):
            inputs = slice(first, last, step)
            want = source[..., inputs]
            for spread, x in product((1, 2), (source, apart)):
                whole = np.full((2, spread * want.shape[-1] + 3), np.nan, dtype)
                target = whole[..., 1 : 1 + spread * want.shape[-1] : spread]
                for copy in slabs.copies(target, size, inputs, runs=x is source):
                    np.copyto(copy.target, copy.source(x)[1])
                assert target.tobytes() == want[1].tobytes()
                assert np.isnan(whole).sum() == whole.size - target.size
