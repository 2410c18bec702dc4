"""Windows under long strides added block by block: values, bits, bad numbers, which layers go so."""

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
from engine.kernels.direct import adjoints, gathered, overlapped
from engine.kernels.dispatch import input_kernel
from engine.threads import computing
from tests.engine.kernels.images import image, line, summed, tensors

LAYERS: list[dict[str, Any]] = [
    {"size": (45,), "kernel": (10,), "padding": (0, 0), "stride": (5,), "outputs": 3},
    {"size": (47,), "kernel": (23,), "padding": (9, 4), "stride": (6,), "channels": 2},
    {"size": (26, 31), "kernel": (9, 16), "padding": (4, 3), "stride": (4, 8), "outputs": 4},
    {"size": (13, 40), "kernel": (3, 12), "padding": (1, 11), "stride": (2, 5), "channels": 3},
    {"size": (24, 24), "kernel": (16, 16), "padding": (4, 4), "stride": (8, 8), "groups": 5},
    {"size": (9, 8, 11), "kernel": (4, 5, 6), "padding": (2, 1), "stride": (3, 3, 3), "outputs": 2},
    {"size": (3, 50), "kernel": (8, 7), "padding": (7, 0), "stride": (7, 3), "outputs": 2},
]
EACH = pytest.mark.parametrize("shape", LAYERS, ids=["x".join(map(str, s["size"])) for s in LAYERS])


def layer(shape: dict[str, Any], itemsize: int = 4) -> Correlation:
    return image(**{"groups": 1, **shape}, itemsize=itemsize)


def gradient(c: Correlation, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    dx = np.full((len(dy), c.groups, c.channels, *(a.size for a in c.axes)), np.nan, dy.dtype)
    computing(None, overlapped.backward_input, c, dy, w, dx)
    return dx


@pytest.mark.parametrize("itemsize", [4, 8])
@EACH
def test_values(shape: dict[str, Any], itemsize: int) -> None:
    c = layer(shape, itemsize)
    _, w, _, dy = tensors(c, 3)
    assert overlapped.suits(c)
    tolerance = 1e-4 if itemsize == 4 else 1e-12
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), tolerance, tolerance)


@given(st.data())
def test_values_of_any_axis(data: st.DataObject) -> None:
    stride, kernel, size = (data.draw(st.integers(1, most)) for most in (9, 30, 40))
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
@EACH
def test_bad_numbers_reach_what_they_are_added_to_and_nothing_else(
    shape: dict[str, Any], bad: float
) -> None:
    c = layer(shape)
    _, w, _, dy = tensors(c, 3)
    clean = gradient(c, dy, w)
    dy[1, 0, 0].flat[-1] = bad
    w[0, 0, c.taps - 1] = bad
    with np.errstate(invalid="ignore"):
        got, want = gradient(c, dy, w), summed(c, dy, w)
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)
    assert set(got.view(np.uint32)[np.isnan(got)].tolist()) <= {0x7FC00000}
    assert got[:, 1:].tobytes() == clean[:, 1:].tobytes()


def test_a_tile_at_a_time_where_columns_are_many(asked: list[int]) -> None:
    long = replace(line(400_000, 700, 200, 50, 3), channels=12)
    wide = image(
        (2600, 90), (40, 20), (8, 8), (16, 9), itemsize=4, groups=1, channels=30, outputs=2
    )
    for each in (long, wide):
        assert each.input_blocks.tile != each.positions
        _, w, _, dy = tensors(each, 1)
        got = gradient(each, dy, w)
        want = np.empty_like(got)
        computing(None, gathered.backward_input, each, dy, w, want)
        np.testing.assert_allclose(got, want, 1e-3, 1e-3)
    assert max(asked) <= PART_BYTES


@pytest.mark.parametrize(
    "c",
    [
        line(16_000, 400, 160, 0, 64),
        line(2048, 1024, 256, 0, 513),
        image((257, 257), (65, 65), (16, 16), (32, 32), itemsize=4, groups=21),
    ],
    ids=["filter bank", "inverse spectrum", "upsampling by 32"],
)
def test_which_layers_go_so(c: Correlation) -> None:
    assert input_kernel(c) is overlapped.backward_input
    assert adjoints.phases(c) == ()


@pytest.mark.parametrize(
    "c",
    [
        image((224, 224), (11, 11), (2, 2), (4, 4), itemsize=4, groups=1, channels=3, outputs=64),
        image((56, 56), (4, 4), (1, 1), (2, 2), itemsize=4, groups=96),
        line(8000, 80, 4, 38, 128),
        line(8000, 16, 16, 0, 64),
        line(8000, 1, 16, 0, 64),
        line(280, 3, 4, 0, 32),
    ],
    ids=["short strides", "depthwise", "long line", "side by side", "one tap", "short runs"],
)
def test_which_go_another_way(c: Correlation) -> None:
    assert overlapped.suits(c)
    assert input_kernel(c) is not overlapped.backward_input


def test_what_does_not_suit() -> None:
    c = line(2048, 1024, 256, 0, 513)
    assert not overlapped.suits(replace(c, mode="reflect"))
    assert not overlapped.suits(replace(c, channels=2, channels_last=True))
    assert overlapped.suits(replace(c, channels_last=True)), "one channel lies the same either way"
    assert not overlapped.suits(replace(c, axes=(replace(c.axes[0], dilation=2),)))


def test_calls_and_runs_are_told_from_the_geometry() -> None:
    c = image((24, 24), (16, 16), (4, 4), (8, 8), itemsize=4, groups=1)
    assert (overlapped.calls(c), overlapped.run(c)) == (9, 16 / 3)
    c = line(2048, 1024, 256, 0, 1)
    assert (overlapped.calls(c), overlapped.run(c)) == (4, 256)
