"""Banded products against gathered patches: values, edges, blocks and bad numbers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from engine.kernels import banded, banding, bands, direct
from tests.engine.kernels.images import IMAGES, Pair, image, tensors


@pytest.fixture(params=[2 << 20, 1 << 11], ids=["whole", "cut"])
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(banding, "PART_BYTES", request.param)
    _forget()
    yield
    _forget()


def _forget() -> None:
    banding.banding.cache_clear()
    bands.views.cache_clear()


@pytest.mark.parametrize("shape", IMAGES)
@pytest.mark.parametrize(("channels", "outputs"), [(1, 1), (3, 2), (2, 5)])
@pytest.mark.parametrize("moves", [0, 9], ids=["slab", "taps"])
@pytest.mark.usefixtures("_parts")
def test_values(
    shape: dict[str, Pair],
    channels: int,
    outputs: int,
    moves: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(banding, "MOST_MOVES", moves)
    c = image(**shape, channels=channels, outputs=outputs)
    x, w, bias, dy = tensors(c)
    got, want = np.full((2, *dy.shape), np.nan)
    banded.forward(c, x, w, bias, got)
    direct.forward(c, x, w, bias, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_into_every_second_number() -> None:
    c = image((9, 9), (3, 3), (1, 1))
    x, w, bias, dy = tensors(c)
    spread, want = np.zeros((*dy.shape[:-1], 2 * dy.shape[-1])), np.zeros_like(dy)
    banded.forward(c, x, w, bias, spread[..., ::2])
    direct.forward(c, x, w, bias, want)
    np.testing.assert_allclose(spread[..., ::2], want, rtol=1e-12, atol=1e-12)
    assert not spread[..., 1::2].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("stride", "size", "outputs"), [((1, 1), 5, 1), ((2, 2), 3, 3)])
@pytest.mark.usefixtures("_parts")
def test_bad_numbers_touch_only_what_reads_them_and_change_no_other_bit(
    bad: float, stride: Pair, size: int, outputs: int
) -> None:
    c = image((20, 21), (5, size), (2, 2), stride, itemsize=4, outputs=outputs)
    x, w, bias, dy = tensors(c)
    for row in range(20):
        clean, got, want = np.zeros((3, *dy.shape), np.float32)
        banded.forward(c, x, w, bias, clean)
        spoilt = x.copy()
        spoilt[1, 4, 0, row, 9] = bad
        with np.errstate(invalid="ignore"):
            banded.forward(c, spoilt, w, bias, got)
            direct.forward(c, spoilt, w, bias, want)
        finite = np.isfinite(want)
        assert not finite.all()
        np.testing.assert_array_equal(got[~finite], want[~finite])
        assert got[finite].tobytes() == clean[finite].tobytes()


@pytest.mark.parametrize("rows", range(3, 24))
@pytest.mark.parametrize("part", [1 << 11, 1 << 12, 1 << 13])
def test_what_threads_take_at_once_does_not_overlap(
    rows: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(banding, "PART_BYTES", part)
    banding.banding.cache_clear()
    c = image((rows, 9), (3, 3), (1, 1))
    height, end = banding.banding(c).height, 0
    for spans in banding.row_blocks(c):
        assert spans[0][0] == end
        for lo, hi in spans:
            assert lo <= end < hi
            assert hi - lo >= height
            end = hi
    assert end == rows
    banding.banding.cache_clear()


@pytest.mark.parametrize(("size", "kernel", "groups"), [((6000, 200), 3, 1), ((40, 40), 25, 64)])
def test_a_bad_number_takes_no_more_memory(size: Pair, kernel: int, groups: int) -> None:
    half = kernel // 2
    c = image(size, (kernel, kernel), (half, half), itemsize=4, groups=groups)
    x, w, _, y = tensors(c, 1)
    x[0, :, 0, 7, 7] = np.nan
    # The first time, plans are made as well.
    banded.forward(c, x, w, None, y)
    tracemalloc.start()
    banded.forward(c, x, w, None, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 2 << 20


def test_a_strip_larger_than_the_scratch_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    c = image((9, 9), (3, 3), (1, 1))
    assert banding.suits(c)
    monkeypatch.setattr(banding, "PART_BYTES", 1 << 10)
    assert not banding.suits(c)


def test_the_same_bits_whoever_comes_along() -> None:
    c = image((30, 30), (7, 7), (3, 3), itemsize=4)
    x, w, _, dy = tensors(c, 4)
    whole, alone = np.zeros((2, *dy.shape), np.float32)
    banded.forward(c, x, w, None, whole)
    for n in range(4):
        banded.forward(c, x[n : n + 1], w, None, alone[n : n + 1])
    assert whole.tobytes() == alone.tobytes()
