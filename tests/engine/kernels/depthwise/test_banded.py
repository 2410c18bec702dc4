"""Banded products against gathered patches: values, edges, blocks and bad numbers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import engine
from engine.arena import PART_BYTES
from engine.geometry import strided_out
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise import banded, banding, bands
from engine.kernels.direct import gathered
from engine.threads import get_threads
from tests.engine.kernels.images import IMAGES, Pair, Shape, image, tensors


@pytest.fixture(params=[(2 << 20, 8), (1 << 11, 8), (1 << 11, 4)], ids=["whole", "cut", "across"])
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _small(monkeypatch, *request.param)


@pytest.fixture
def _across(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _small(monkeypatch, 1 << 11, 4)


def _small(monkeypatch: pytest.MonkeyPatch, part: int, least: int) -> Iterator[None]:
    monkeypatch.setattr(banding, "PART_BYTES", part)
    monkeypatch.setattr(banding, "LEAST_COLUMNS", least)
    monkeypatch.setattr(banding, "WHOLE_COLUMNS", 2 * least)
    _forget()
    yield
    _forget()


def _forget() -> None:
    banding.banding.cache_clear()
    banding._columns.cache_clear()
    banding._part.cache_clear()
    bands.views.cache_clear()


def _with_edges(low: int, high: int, stride: int = 1, dilation: int = 1) -> Correlation:
    """61 columns with five taps across, and padding that differs, or is cut off where it is negative."""
    c = image((6, 61), (3, 5), (1, 0), groups=2)
    out = strided_out(61, 4 * dilation + 1, stride, low, high)
    own = replace(c.axes[1], low=low, high=high, out=out, stride=stride, dilation=dilation)
    return replace(c, axes=(c.axes[0], own))


@pytest.mark.parametrize("shape", IMAGES)
@pytest.mark.parametrize(("channels", "outputs"), [(1, 1), (3, 2), (2, 5)])
@pytest.mark.parametrize("moves", [0, 9], ids=["slab", "taps"])
@pytest.mark.usefixtures("_parts")
def test_values(
    shape: Shape,
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
    gathered.forward(c, x, w, bias, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "edges", [(0, 0), (2, 2), (4, 0), (0, 3), (-3, -2), (60, 1), (0, 50)], ids=str
)
@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (1, 3), (3, 2)], ids=str)
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.usefixtures("_across")
def test_parts_read_what_stands_beside_them(edges: Pair, steps: Pair, itemsize: int) -> None:
    c = replace(_with_edges(*edges, *steps), itemsize=itemsize)
    found = list(banding.parts(c))
    assert len(found) > 1
    x, w, bias, dy = tensors(c)
    got, want = np.full((2, *dy.shape), np.nan, dy.dtype)
    banded.forward(c, x, w, bias, got)
    gathered.forward(c, x, w, bias, want)
    bound = 1e-12 if itemsize == 8 else 2e-6
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound)
    # Columns that are not next to each other in memory.
    last = np.ascontiguousarray(np.moveaxis(x, (1, 2), (3, 4)))
    spread = np.full((*dy.shape[:1], *dy.shape[3:], *dy.shape[1:3]), np.nan, dy.dtype)
    target = np.moveaxis(spread, (3, 4), (1, 2))
    banded.forward(c, np.moveaxis(last, (3, 4), (1, 2)), w, bias, target)
    np.testing.assert_allclose(target, want, rtol=bound, atol=bound)


def test_into_every_second_number() -> None:
    c = image((9, 9), (3, 3), (1, 1))
    x, w, bias, dy = tensors(c)
    spread, want = np.zeros((*dy.shape[:-1], 2 * dy.shape[-1])), np.zeros_like(dy)
    banded.forward(c, x, w, bias, spread[..., ::2])
    gathered.forward(c, x, w, bias, want)
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
            gathered.forward(c, spoilt, w, bias, want)
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
    _forget()
    c = image((rows, 9), (3, 3), (1, 1))
    height, end = banding.banding(c).height, 0
    for spans in banding.row_blocks(c):
        assert spans[0][0] == end
        for lo, hi in spans:
            assert lo <= end < hi
            assert hi - lo >= height
            end = hi
    assert end == rows
    _forget()


@pytest.mark.parametrize(
    ("size", "kernel", "groups"), [((6000, 200), 3, 1), ((40, 40), 25, 64), ((40, 1200), 25, 3)]
)
def test_a_bad_number_takes_no_more_memory(size: Pair, kernel: int, groups: int) -> None:
    half = kernel // 2
    c = image(size, (kernel, kernel), (half, half), itemsize=4, groups=groups)
    x, w, _, y = tensors(c, 1)
    x[0, :, 0, 7, 7] = np.nan
    before = get_threads()
    engine.set_threads(1)  # a thread that comes later brings scratch of its own
    # The first time, plans are made as well.
    banded.forward(c, x, w, None, y)
    tracemalloc.start()
    banded.forward(c, x, w, None, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    engine.set_threads(before)
    assert peak <= 2 << 20


def test_a_strip_larger_than_the_scratch_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    c = image((9, 9), (3, 3), (1, 1))
    assert banding.suits(c)
    monkeypatch.setattr(banding, "PART_BYTES", 1 << 10)
    _forget()
    assert not banding.suits(c)
    _forget()


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize(
    ("size", "kernel", "channels"),
    [((60, 2000), 15, 1), ((512, 512), 31, 1), ((90, 700), 101, 1), ((70, 900), 15, 3)],
)
def test_wide_maps_are_cut_into_parts_whose_strips_fit(
    size: Pair, kernel: int, channels: int, itemsize: int
) -> None:
    half = kernel // 2
    c = image(
        size, (kernel,) * 2, (half, half), itemsize=itemsize, channels=channels, outputs=channels
    )
    assert banding.suits(c)
    end, parts = 0, list(banding.parts(c))
    for part in parts:
        own = part.correlation
        assert banding._line(own) * banding._reach(own) <= PART_BYTES
        assert banding.banding(own).index.size * itemsize <= PART_BYTES
        assert part.outputs.start == end
        end = part.outputs.stop
    assert end == size[1]
    assert len(parts) > 1
    # All but the first and the last few read no padding, and share what is kept.
    assert len({id(part.correlation) for part in parts}) <= 2 * -(-half // own.axes[1].out) + 3


@pytest.mark.parametrize(
    "shape",
    [
        {"size": (500, 3000), "kernel": (3, 3), "padding": (32, 32), "dilation": (32, 32)},
        {"size": (600, 3000), "kernel": (151, 301), "padding": (150, 150)},
    ],
    ids=["mostly zeros", "too narrow"],
)
def test_maps_are_not_cut_where_that_takes_longer(shape: Shape) -> None:
    assert not banding.suits(image(**shape, itemsize=4))


@pytest.mark.parametrize("itemsize", [4, 8])
def test_parts_have_the_same_bits_whoever_comes_along(itemsize: int) -> None:
    c = image((40, 700), (31, 31), (15, 15), itemsize=itemsize, groups=2)
    assert len(list(banding.parts(c))) > 1
    x, w, bias, dy = tensors(c, 3)
    found, before = [], get_threads()
    for threads in (1, 2, 3):
        engine.set_threads(threads)
        whole, alone = np.zeros((2, *dy.shape), dy.dtype)
        banded.forward(c, x, w, bias, whole)
        for n in range(3):
            banded.forward(c, x[n : n + 1], w, bias, alone[n : n + 1])
        found += [whole.tobytes(), alone.tobytes()]
    engine.set_threads(before)
    assert len(set(found)) == 1


def test_the_same_bits_whoever_comes_along() -> None:
    c = image((30, 30), (7, 7), (3, 3), itemsize=4)
    x, w, _, dy = tensors(c, 4)
    whole, alone = np.zeros((2, *dy.shape), np.float32)
    banded.forward(c, x, w, None, whole)
    for n in range(4):
        banded.forward(c, x[n : n + 1], w, None, alone[n : n + 1])
    assert whole.tobytes() == alone.tobytes()
