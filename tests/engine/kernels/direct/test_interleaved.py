"""Residues of images from shared copies: values, bits in any company, bad numbers, which layers go so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine
from engine.arena import PART_BYTES
from engine.geometry import Axis
from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.direct import gathered, interleaved
from engine.kernels.products import UNPACKED
from engine.threads import computing, get_threads
from tests.engine.kernels.images import image, summed, tensors
from tests.engine.memory import assert_workspace_holds

LAYERS: dict[str, dict[str, Any]] = {
    "even": {"size": (16, 12), "kernel": (4, 4), "padding": (1, 1), "stride": (2, 2)},
    "odd": {"size": (13, 18), "kernel": (3, 5), "padding": (1, 2), "stride": (2, 3)},
    "apart": {"size": (17, 11), "kernel": (3, 3), "padding": (0, 1), "stride": (4, 2)},
    "down alone": {"size": (15, 9), "kernel": (5, 3), "padding": (2, 2), "stride": (3, 1)},
    "across alone": {"size": (7, 21), "kernel": (1, 4), "padding": (0, 3), "stride": (1, 2)},
    "all padding": {"size": (3, 4), "kernel": (6, 5), "padding": (5, 4), "stride": (2, 2)},
    "one place": {"size": (4, 4), "kernel": (4, 4), "padding": (0, 0), "stride": (3, 2)},
}
EACH = pytest.mark.parametrize("name", LAYERS)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = get_threads()
    yield
    engine.set_threads(before)


@pytest.fixture
def _sharing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads share a sample that is one band, however little work it is."""
    interleaved._shares.cache_clear()
    monkeypatch.setattr(interleaved, "SHARED_FLOPS", 0)
    yield
    interleaved._shares.cache_clear()


def layer(name: str, itemsize: int = 4) -> Correlation:
    return image(**LAYERS[name], groups=1, channels=7, outputs=5, itemsize=itemsize)


def gradient(c: Correlation, dy: np.ndarray, w: np.ndarray, kernel: Any = None) -> np.ndarray:
    dx = np.full((len(dy), 1, c.channels, *(a.size for a in c.axes)), np.nan, dy.dtype)
    computing(None, kernel or interleaved.backward_input, c, dy, w, dx)
    return dx


@pytest.mark.usefixtures("shared", "_sharing")
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("rows", [1, 3, None], ids=["rows", "bands", "whole"])
@EACH
def test_values(
    name: str, rows: int | None, itemsize: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = layer(name, itemsize)
    assert interleaved.suits(c)
    if rows is not None:
        monkeypatch.setattr(interleaved, "_rows", lambda _: rows)
    _, w, _, dy = tensors(c, 3)
    tolerance = 1e-4 if itemsize == 4 else 1e-12
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), tolerance, tolerance)


@pytest.mark.usefixtures("shared", "_sharing")
@pytest.mark.parametrize("itemsize", [4, 8])
@EACH
def test_the_same_bits_in_any_company_on_any_threads(name: str, itemsize: int) -> None:
    c = layer(name, itemsize)
    _, w, _, dy = tensors(c, 5)
    alone = np.concatenate([gradient(c, dy[n : n + 1], w) for n in range(5)])
    for threads in (1, 2, 3):
        engine.set_threads(threads)
        for samples in range(1, 6):
            assert gradient(c, dy[:samples], w).tobytes() == alone[:samples].tobytes()
    assert gradient(c, np.asfortranarray(dy), np.asfortranarray(w)).tobytes() == alone.tobytes()


def test_two_threads_share_a_sample_by_bands_or_by_work() -> None:
    large = image((128, 128), (4, 4), (1, 1), (2, 2), itemsize=4, groups=1, channels=64, outputs=64)
    assert 1 < -(-64 // interleaved._rows(large)) < 64
    assert interleaved._shares(large) == ((0, 1, 2, 3),)
    small = image((28, 28), (3, 3), (1, 1), (2, 2), itemsize=4, groups=1, channels=128, outputs=128)
    assert interleaved._rows(small) == 14
    # Of one tap, twice two, and four.
    pairs = interleaved._pairs(small)
    work = [pair.work for pair in pairs]
    assert sorted(work) == [128, 256, 256, 512]
    halves = [sum(work[n] for n in share) for share in interleaved._shares(small)]
    assert sorted(halves) == [512, 640]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["dy", "w"])
@EACH
def test_bad_numbers_reach_what_they_are_added_to_and_nothing_else(
    name: str, where: str, bad: float
) -> None:
    c = layer(name)
    _, w, _, dy = tensors(c, 3)
    if where == "dy":
        dy[1, 0, 2, -1, 0] = bad
        dy[1, 0, 3, -1, 0] = -bad  # their sum is another NaN than numbers are to have
    else:
        w[0, 3, c.taps + 1] = bad
    with np.errstate(invalid="ignore"):
        got = gradient(c, dy, w, dispatch._interleaved)
        want = summed(c, dy, w)
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)
    assert set(got.view(np.uint32)[np.isnan(got)].tolist()) <= {0x7FC00000}


def test_scratch_holds_every_band(asked: list[int]) -> None:
    most = 0
    wide, deep = ((60, 1500), (4, 4)), ((40, 40), (3, 3))
    for (size, kernel), channels, outputs in ((wide, 500, 3), (wide, 2, 110), (deep, 300, 300)):
        for itemsize in (4, 8):
            c = image(
                size,
                kernel,
                (1, 1),
                (2, 2),
                (),
                itemsize,
                groups=1,
                channels=channels,
                outputs=outputs,
            )
            if not interleaved.suits(c):
                continue
            _, w, _, dy = tensors(c, 1)
            want = gradient(c, dy, w, gathered.backward_input)
            asked.clear()
            got = gradient(c, dy, w)
            most = max(most, *asked)
            np.testing.assert_allclose(got, want, 1e-2, 1e-3)
    assert PART_BYTES // 4 < most <= PART_BYTES


@pytest.mark.usefixtures("traced")
def test_memory_is_what_the_plan_says() -> None:
    rng = np.random.default_rng(0)
    config = {"stride": 2, "padding": 1}
    sizes = {"x": (3, 128, 24, 24), "weight": (128, 64, 4, 4)}
    given = {name: rng.standard_normal(size, np.float32) for name, size in sizes.items()}
    assert_workspace_holds("conv_transpose", "forward", config, given)
    assert_workspace_holds(
        "conv_transpose",
        "forward",
        config | {"weight_layout": "HWIO"},
        given | {"weight": np.ascontiguousarray(given["weight"].transpose(2, 3, 0, 1))},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"groups": 2},
        {"mode": "reflect"},
        {"channels_last": True},
        {"axes": (Axis(16, 3, 2, 2, 1, 1, 7),) * 2},
        {"axes": (Axis(16, 3, 1, 1, 1, 1, 16),) * 2},
        {"axes": (Axis(16, 4, 2, 1, 1, 1, 8),)},
        {"axes": (Axis(16, 4, 2, 1, 1, 1, 8),) * 3},
        {"outputs": 100_000},
        {"channels": 100_000},
        {"axes": (Axis(1, 2, 3, 1, 2, 3, 2), Axis(16, 4, 2, 1, 1, 1, 8))},
    ],
    ids=[
        "groups",
        "padding",
        "channels last",
        "dilation",
        "stride 1",
        "line",
        "volume",
        "copies beyond the scratch",
        "sums beyond it",
        "no taps",
    ],
)
def test_others_are_left_to_others(change: dict[str, Any]) -> None:
    c = layer("even")
    assert interleaved.suits(c)
    assert not interleaved.suits(replace(c, **change))


def test_layers_of_much_work_go_so_where_blas_copies_operands() -> None:
    c = image((64, 64), (4, 4), (1, 1), (2, 2), itemsize=4, groups=1, channels=32, outputs=64)
    expected = dispatch._by_residues if UNPACKED else dispatch._interleaved
    assert dispatch.input_kernel(c) is expected
    small = {"axes": (Axis(16, 4, 2, 1, 1, 1, 8),) * 2, "channels": 256, "outputs": 64}
    for change in ({"outputs": 15}, {"channels_last": True}, small):
        assert dispatch.input_kernel(replace(c, **change)) is not dispatch._interleaved
    little = image((48, 36), (4, 4), (1, 1), (2, 2), itemsize=4, groups=1, channels=32, outputs=40)
    assert interleaved.suits(little)
    assert interleaved.LEAST_FLOPS * 0.7 < little.flops < interleaved.LEAST_FLOPS
    assert dispatch.input_kernel(little) is dispatch._by_residues


def test_threads_are_told_how_much_work_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(interleaved, "for_each", lambda _, __, flops: told.append(flops))
    c = layer("even")
    _, w, _, dy = tensors(c, 3)
    gradient(c, dy, w)
    assert told == [3 * c.flops]
    assert dispatch.adjoint_algorithm(c) == "direct"
