"""All residues of a block by one product: values, bits, bad numbers, which layers go so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.arena import PART_BYTES
from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.direct import adjoints, gathered, shuffled
from engine.kernels.dispatch import input_kernel
from engine.threads import computing
from tests.engine.kernels.images import image, line, summed, tensors

LAYERS: list[dict[str, Any]] = [
    {"size": (45,), "kernel": (10,), "padding": (0, 0), "stride": (5,), "outputs": 3},
    {"size": (47,), "kernel": (18,), "padding": (9, 4), "stride": (6,), "channels": 2},
    {"size": (26, 31), "kernel": (12, 16), "padding": (4, 3), "stride": (4, 8), "outputs": 4},
    {"size": (13, 40), "kernel": (4, 5), "padding": (1, 4), "stride": (2, 5), "channels": 3},
    {"size": (24, 24), "kernel": (16, 16), "padding": (4, 4), "stride": (8, 8), "groups": 5},
    {"size": (9, 8, 11), "kernel": (3, 6, 6), "padding": (2, 1), "stride": (3, 3, 3), "outputs": 2},
    {"size": (3, 50), "kernel": (7, 9), "padding": (6, 0), "stride": (7, 3), "outputs": 2},
]
EACH = pytest.mark.parametrize("shape", LAYERS, ids=["x".join(map(str, s["size"])) for s in LAYERS])


def layer(shape: dict[str, Any], itemsize: int = 4) -> Correlation:
    return image(**{"groups": 1, **shape}, itemsize=itemsize)


def gradient(c: Correlation, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    dx = np.full((len(dy), c.groups, c.channels, *(a.size for a in c.axes)), np.nan, dy.dtype)
    computing(None, shuffled.backward_input, c, dy, w, dx)
    return dx


@pytest.mark.parametrize("itemsize", [4, 8])
@EACH
def test_values(shape: dict[str, Any], itemsize: int) -> None:
    c = layer(shape, itemsize)
    _, w, _, dy = tensors(c, 3)
    assert shuffled.suits(c)
    tolerance = 1e-4 if itemsize == 4 else 1e-12
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), tolerance, tolerance)


@given(st.data())
def test_values_of_any_axis(data: st.DataObject) -> None:
    stride, span, size = (data.draw(st.integers(1, most)) for most in (9, 4, 40))
    kernel = stride * span
    low, high = (data.draw(st.integers(0, kernel)) for _ in range(2))
    out = (size + low + high - kernel) // stride + 1
    # The last windows may be left out, or reach beyond the padding.
    out = max(1, out + data.draw(st.integers(-1, 1)))
    c = Correlation((Axis(size, kernel, stride, 1, low, high, out),), 1, 1, 2, "zeros", 8)
    _, w, _, dy = tensors(c, 1)
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), 1e-12, 1e-12)


@pytest.mark.usefixtures("shared", "threads_restored")
@pytest.mark.parametrize("itemsize", [4, 8])
@EACH
def test_the_same_bits_in_any_company_on_any_threads(shape: dict[str, Any], itemsize: int) -> None:
    c = layer(shape, itemsize)
    _, w, _, dy = tensors(c, 6)
    alone = np.concatenate([gradient(c, dy[n : n + 1], w) for n in range(6)])
    for threads in (1, 2, 3):
        engine.set_threads(threads)
        for samples in range(1, 7):
            assert gradient(c, dy[:samples], w).tobytes() == alone[:samples].tobytes()
    assert gradient(c, np.asfortranarray(dy), w).tobytes() == alone.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["dy", "weight", "both"])
@EACH
def test_bad_numbers_reach_what_they_are_added_to_and_nothing_else(
    shape: dict[str, Any], where: str, bad: float
) -> None:
    c = layer(shape)
    _, w, _, dy = tensors(c, 3)
    clean = gradient(c, dy, w)
    if where != "weight":
        dy[1, 0, 0].flat[-1] = bad
    if where != "dy":
        w[0, 0, c.taps - 1] = bad
    with np.errstate(invalid="ignore"):
        got, want = gradient(c, dy, w), summed(c, dy, w)
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)
    assert set(got.view(np.uint32)[np.isnan(got)].tolist()) <= {0x7FC00000}
    if where == "dy":
        assert got[[0, 2]].tobytes() == clean[[0, 2]].tobytes()


def test_some_blocks_at_a_time_where_they_are_many(asked: list[int]) -> None:
    long = line(1_000_000, 600, 200, 50, 3)
    wide = image(
        (1400, 90), (40, 20), (8, 8), (20, 10), itemsize=4, groups=1, channels=60, outputs=2
    )
    small = image((24, 24), (16, 16), (4, 4), (8, 8), itemsize=8, groups=300)
    for each in (long, wide, small):
        cut = shuffled._cut(each)
        assert cut is not None
        blocks = len(shuffled._blocks(each.axes[0]))
        assert (cut.blocks, cut.channels, cut.groups) < (blocks, each.channels, each.groups)
        _, w, _, dy = tensors(each, 2)
        got = gradient(each, dy, w)
        want = np.empty_like(got)
        computing(None, gathered.backward_input, each, dy, w, want)
        np.testing.assert_allclose(got, want, 1e-3, 1e-3)
    assert max(asked) <= PART_BYTES


@pytest.mark.parametrize(
    "c",
    [
        image((256, 256), (64, 64), (16, 16), (32, 32), itemsize=4, groups=21),
        image((128, 128), (16, 16), (4, 4), (8, 8), itemsize=4, groups=21),
        image((64, 64), (16, 16), (4, 4), (8, 8), itemsize=4, groups=1, channels=32, outputs=64),
        line(16_000, 640, 160, 0, 8),
    ],
    ids=["upsampling by 32", "upsampling by 8", "dense", "line"],
)
def test_which_layers_go_so(c: Correlation) -> None:
    assert input_kernel(c) is shuffled.backward_input
    assert adjoints.phases(c) == ()


@pytest.mark.parametrize(
    "c",
    [
        image((56, 56), (4, 4), (1, 1), (2, 2), itemsize=4, groups=96),
        line(8000, 80, 4, 38, 128),
        line(8000, 16, 16, 0, 64),
        line(8000, 1, 1, 0, 64),
    ],
    ids=["stride 2", "many filters", "side by side", "one tap"],
)
def test_which_go_another_way(c: Correlation) -> None:
    assert shuffled.suits(c)
    assert input_kernel(c) is not shuffled.backward_input


def test_what_does_not_suit() -> None:
    c = line(2048, 1024, 256, 0, 13)
    assert shuffled.suits(c)
    assert not shuffled.suits(replace(c, mode="reflect"))
    assert not shuffled.suits(replace(c, channels=2, channels_last=True))
    assert shuffled.suits(replace(c, channels_last=True)), "one channel lies the same either way"
    assert not shuffled.suits(replace(c, axes=(replace(c.axes[0], dilation=2),)))
    assert not shuffled.suits(replace(c, axes=(replace(c.axes[0], kernel=1000),)))
    assert not shuffled.suits(line(10**7, 10**6, 10**6 // 2, 0, 1)), "a row of blocks is too long"


def test_what_is_made_and_read_is_told_from_the_geometry() -> None:
    c = image((24, 20), (16, 8), (4, 4), (8, 4), itemsize=4, groups=1)
    assert (shuffled.reached(c), shuffled.made(c)) == (4, 4 * 8 * 5 * 4)
