"""Columns of small maps added tap by tap: values, bits in any company, bad numbers, which layers go so."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine
from engine.arena import PART_BYTES
from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.direct import adjoints, joined, scattered
from engine.kernels.dispatch import correlate_input
from engine.threads import computing
from tests.engine.kernels.images import image, summed, tensors
from tests.engine.memory import assert_workspace_holds

LAYERS: list[dict[str, Any]] = [
    {"size": (4, 4), "kernel": (3, 3), "padding": (1, 1), "stride": (2, 2), "channels": 70},
    {"size": (9, 6), "kernel": (4, 3), "padding": (0, 2), "stride": (3, 2), "channels": 61},
    {"size": (8, 7), "kernel": (4, 4), "padding": (2, 1), "stride": (2, 2), "channels": 50},
    {"size": (5, 4), "kernel": (3, 3), "padding": (1, 1), "stride": (1, 1), "channels": 49},
    {"size": (2, 3), "kernel": (3, 3), "padding": (1, 0), "stride": (2, 2), "channels": 90},
    {"size": (9, 9), "kernel": (3, 2), "stride": (2, 2), "dilation": (2, 3), "padding": (1, 1)}
    | {"channels": 100},
]
EACH = pytest.mark.parametrize("shape", LAYERS, ids=["x".join(map(str, s["size"])) for s in LAYERS])


def layer(shape: dict[str, Any], itemsize: int = 4, last: bool = False) -> Correlation:
    return image(**shape, groups=1, outputs=700, itemsize=itemsize, channels_last=last)


def line() -> Correlation:
    return Correlation((Axis(61, 16, 8, 1, 4, 4, 7),), 1, 64, 280, "zeros", 4)


def volume() -> Correlation:
    return Correlation((Axis(4, 3, 2, 1, 1, 1, 2),) * 3, 1, 40, 270, "zeros", 4)


def gradient(c: Correlation, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    dx = np.full((len(dy), 1, c.channels, *(a.size for a in c.axes)), np.nan, dy.dtype)
    computing(None, correlate_input, c, dy, w, dx)
    return dx


def taken(c: Correlation) -> bool:
    return adjoints.phases(c) == () and adjoints.scattering(c) is scattered.backward_input


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@EACH
def test_values(shape: dict[str, Any], last: bool, itemsize: int) -> None:
    c = layer(shape, itemsize, last)
    _, w, _, dy = tensors(c, 6)
    assert taken(c)
    tolerance = 2e-4 if itemsize == 4 else 1e-11
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), tolerance, tolerance)


@pytest.mark.parametrize("c", [line(), volume()], ids=["line", "volume"])
def test_values_along_one_axis_and_three(c: Correlation) -> None:
    _, w, _, dy = tensors(c, 2)
    assert taken(c)
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), 2e-4, 2e-4)


@pytest.mark.usefixtures("shared", "threads_restored")
@pytest.mark.parametrize("itemsize", [4, 8])
@EACH
def test_the_same_bits_in_any_company_on_any_threads(
    shape: dict[str, Any], itemsize: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = layer(shape, itemsize)
    _, w, _, dy = tensors(c, 9)
    alone = np.concatenate([gradient(c, dy[n : n + 1], w) for n in range(9)])
    for threads in (1, 2, 3):
        engine.set_threads(threads)
        for samples in range(1, 10):
            assert gradient(c, dy[:samples], w).tobytes() == alone[:samples].tobytes()
    lies_otherwise = np.asfortranarray(dy)
    assert gradient(c, lies_otherwise, w).tobytes() == alone.tobytes()
    # Where this BLAS does not agree with itself, samples go alone.
    monkeypatch.setattr(scattered, "agree", lambda _: False)
    assert gradient(c, dy, w).tobytes() == alone.tobytes()


@pytest.mark.parametrize("unlike", [False, True])
def test_some_samples_share_products_and_some_do_not(
    unlike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined, "UNLIKE", unlike)
    several, lone = layer(LAYERS[0]), layer(LAYERS[4])
    assert scattered._products(several)
    assert (scattered.probe_bytes(several) > 0) != unlike
    for c in (lone, layer(LAYERS[0], itemsize=8)):
        assert not scattered._products(c)
        assert scattered.probe_bytes(c) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@EACH
def test_bad_numbers_reach_what_they_are_added_to_and_nothing_else(
    shape: dict[str, Any], bad: float
) -> None:
    c = layer(shape)
    _, w, _, dy = tensors(c, 5)
    clean = gradient(c, dy, w)
    dy[2, 0, 7, -1, 0] = bad
    w[0, 3, c.taps + 1] = bad
    with np.errstate(invalid="ignore"):
        got, want = gradient(c, dy, w), summed(c, dy, w)
    assert not np.isfinite(want).all()
    np.testing.assert_allclose(got, want, 2e-4, 2e-4)
    assert set(got.view(np.uint32)[np.isnan(got)].tolist()) <= {0x7FC00000}
    # Other channels of other samples keep every bit.
    assert got[[0, 1, 3, 4], :, 2:].tobytes() == clean[[0, 1, 3, 4], :, 2:].tobytes()


def test_scratch_holds_every_block(asked: list[int]) -> None:
    wide = image((40, 42), (5, 5), (2, 2), (2, 2), itemsize=4, groups=1, channels=40, outputs=850)
    assert scattered._cut(wide)[0] == 1
    for c in (wide, layer(LAYERS[2]), layer(LAYERS[4], itemsize=8)):
        _, w, _, dy = tensors(c, 5)
        got = np.empty((5, 1, c.channels, *(a.size for a in c.axes)), dy.dtype)
        scattered.backward_input(c, dy, w, got)
        np.testing.assert_allclose(got, summed(c, dy, w), 1e-3, 1e-3)
    assert max(asked) <= PART_BYTES


def test_memory_is_what_the_plan_says() -> None:
    joined.same_bits.cache_clear()
    rng = np.random.default_rng(0)
    config = {"stride": 2, "padding": 1}
    sizes = {"x": (6, 512, 4, 4), "weight": (512, 256, 4, 4)}
    given = {name: rng.standard_normal(size, np.float32) for name, size in sizes.items()}
    tracemalloc.start()
    try:
        assert_workspace_holds("conv_transpose", "forward", config, given)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "change",
    [
        {"groups": 2},
        {"mode": "reflect"},
        {"wanted": "winograd"},
        {"axes": (Axis(8, 2, 2, 1, 0, 0, 4),) * 2},
        {"axes": (Axis(4, 1, 1, 1, 0, 0, 4),) * 2},
        {"outputs": 100_000},
    ],
    ids=["groups", "padding", "winograd", "side by side", "1x1", "scratch"],
)
def test_others_are_left_to_others(change: dict[str, Any]) -> None:
    c = layer(LAYERS[0])
    assert scattered.suits(c)
    assert not scattered.suits(replace(c, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"channels": 16},
        {"channels": 31, "outputs": 2000},
        {"outputs": 31, "channels": 900},
        {"itemsize": 8, "outputs": 60, "channels": 600},
        {"axes": (Axis(4, 3, 1, 1, 1, 1, 4),) * 2, "outputs": 250, "channels": 200},
        {"axes": (Axis(1, 3, 2, 1, 1, 1, 1),) * 2},
    ],
    ids=["few weights", "few channels", "many places", "float64", "stride 1", "taps on padding"],
)
def test_other_ways_are_taken_where_they_are_quicker(change: dict[str, Any]) -> None:
    c = replace(layer(LAYERS[0]), **change)
    assert scattered.suits(c)
    assert not taken(c)
