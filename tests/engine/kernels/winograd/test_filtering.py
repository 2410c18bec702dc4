"""The gradient of 3×3 filters by tiles against the plain sum: values, requests, bad numbers, its error."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import engine
from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.winograd import filtering
from engine.threads import get_threads
from tests.engine.kernels.winograd.test_correlating import BY_NAME, MARGIN, numbers

pytestmark = pytest.mark.usefixtures("as_large")

DIRECT = {"algorithm": "direct"}


def gradient(config: dict[str, Any], x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return engine.backward("conv", config, ["dweight"], x=x, weight=w, dy=dy)["dweight"]


def batch(
    config: dict[str, Any], x: np.ndarray, w: np.ndarray, dy: np.ndarray, rows: tuple[int, ...]
) -> np.ndarray:
    """The gradients of several requests that are computed together."""
    tensors = {"x": x, "weight": w, "dy": dy}
    specs = {name: engine.TensorSpec(a.shape, a.dtype.name) for name, a in tensors.items()}
    call, _ = engine.prepare("conv", "backward", config, specs, ["dweight"])
    return engine.run(call, tensors, rows)["dweight"]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("padding", [0, 1, 2, [[3, 0], [0, 4]]])
@pytest.mark.parametrize("size", [(3, 3), (4, 9), (7, 30), (13, 70), (5, 600)])
@pytest.mark.parametrize("sizes", [(1, 5, 4), (3, 70, 20), (70, 3, 5)])
def test_values_in_float64(
    sizes: tuple[int, int, int], size: tuple[int, int], padding: Any, layout: str
) -> None:
    samples, channels, outputs = sizes
    if samples > 9 and size[1] > 9:
        size = (6, 7)
    x, w = numbers(1, samples, channels, *size), numbers(2, outputs, channels, 3, 3)
    if layout == "NHWC":
        x, w = np.moveaxis(x, 1, -1), w.transpose(2, 3, 1, 0)
    config = {"padding": padding, "layout": layout}
    dy = numbers(4, *engine.forward("conv", config, x=x, weight=w)["y"].shape)
    got, want = (gradient(config | by, x, w, dy) for by in (BY_NAME, DIRECT))
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-10)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("channels", [(64, 64), (100, 40), (144, 80)])
@pytest.mark.parametrize("rows", [(1, 2, 5), (8,), (2, 0, 1), (0,), (1,) * 6])
def test_the_same_bits_alone_and_in_a_batch_and_on_any_threads(
    rows: tuple[int, ...], channels: tuple[int, int]
) -> None:
    samples, (given, made) = sum(rows), channels
    x, dy = numbers(1, samples, given, 20, 22).astype("f4"), numbers(2, samples, made, 20, 22)
    w, dy = numbers(3, made, given, 3, 3).astype("f4"), dy.astype("f4")
    threads, found = get_threads(), []
    try:
        for count in (1, 2, 3):
            engine.set_threads(count)
            found.append(batch({"padding": 1}, x, w, dy, rows).tobytes())
    finally:
        engine.set_threads(threads)
    assert found[0] == found[1] == found[2]
    together = batch({"padding": 1}, x, w, dy, rows)
    start = 0
    for request, count in enumerate(rows):
        own = slice(start, start + count)
        alone = gradient({"padding": 1}, x[own], w, dy[own])
        assert alone.tobytes() == together[request].tobytes()
        start += count


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("where", ["x", "dy"])
@pytest.mark.parametrize("place", [(0, 0), (5, 13), (27, 27)])
def test_bad_numbers_touch_only_what_reads_them(
    bad: float, where: str, place: tuple[int, int]
) -> None:
    x, dy = numbers(1, 3, 40, 28, 28).astype("f4"), numbers(2, 3, 70, 28, 28).astype("f4")
    w = numbers(3, 70, 40, 3, 3).astype("f4")
    {"x": x, "dy": dy}[where][(1, 17, *place)] = bad
    auto, direct = (gradient({"padding": 1} | by, x, w, dy) for by in ({}, DIRECT))
    finite = np.isfinite(direct)
    np.testing.assert_array_equal(np.isfinite(auto), finite)
    np.testing.assert_array_equal(auto[~finite], direct[~finite])
    reached = (slice(None), 17) if where == "x" else 17
    rest = np.ones(finite.shape, bool)
    rest[reached] = False
    np.testing.assert_allclose(auto[rest], direct[rest], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(
        auto[finite], direct[finite], rtol=1e-4, atol=1e-4 * 3e38 * (bad == 3e38) + 1e-3
    )


@pytest.mark.parametrize("kind", ["normal", "positive", "rectified"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("samples", "channels", "size"),
    [(1, 32, 20), (8, 256, 14), (40, 64, 14), (1, 256, 28), (8, 32, 56), (1, 32, 112)],
)
def test_error_against_direct(samples: int, channels: int, size: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)

    def draw(*shape: int, rectified: bool = False) -> np.ndarray:
        found = rng.random(shape) if kind == "positive" else rng.standard_normal(shape)
        return (np.maximum(found, 0) if rectified else found).astype(np.float32)

    x = draw(samples, channels, size, size, rectified=kind == "rectified")
    dy, w = draw(samples, 32, size, size), np.zeros((32, channels, 3, 3), np.float32)
    config = {"padding": 1}
    exact = gradient(config | DIRECT, x.astype("f8"), w.astype("f8"), dy.astype("f8"))
    tiles, plain = (
        float(np.abs(gradient(config | by, x, w, dy) - exact).max()) for by in (BY_NAME, DIRECT)
    )
    assert tiles <= MARGIN * plain


@pytest.mark.parametrize(
    ("size", "x_share", "dy_share"),
    [
        ((14, 14), 1, 0.05),
        ((14, 14), 0.5, 0.2),
        ((14, 14), 0.05, 1),
        ((112, 2), 1, 1),
        ((5, 60), 1, 1),
    ],
)
def test_requests_that_tiles_would_do_less_exactly_are_plain_sums(
    size: tuple[int, int], x_share: float, dy_share: float
) -> None:
    rng = np.random.default_rng(0)

    def draw(channels: int, share: float) -> np.ndarray:
        found = rng.standard_normal((4, channels, *size)).astype(np.float32)
        return found * (rng.random(found.shape) < share)

    x, dy, w = draw(64, x_share), draw(32, dy_share), numbers(2, 32, 64, 3, 3).astype("f4")
    dense_x, dense_dy = draw(64, 1), draw(32, 1)
    config = {"padding": 1}
    auto, plain = (gradient(config | by, x, w, dy) for by in ({}, DIRECT))
    assert auto.tobytes() == plain.tobytes()
    mixed = batch(config, np.concatenate((x, dense_x)), w, np.concatenate((dy, dense_dy)), (4, 4))
    assert mixed[0].tobytes() == plain.tobytes()
    assert mixed[1].tobytes() == gradient(config, dense_x, w, dense_dy).tobytes()


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
def test_whole_numbers_stay_whole(operation: str) -> None:
    """A request of whole numbers is a plain sum, which makes no error; its neighbours are not touched."""
    rng = np.random.default_rng(0)
    x, dy = (rng.integers(-3, 4, (4, 32, 28, 28)).astype("f4") for _ in range(2))
    w = np.zeros((32, 32, 3, 3), np.float32)
    x[1] += 0.1
    config = {"padding": 1}

    def found(own: slice, dtype: str = "f4") -> np.ndarray:
        tensors = {"x": x[own], "weight": w, "dy": dy[own]}
        given = {name: a.astype(dtype) for name, a in tensors.items()}
        return engine.backward(operation, config, ["dweight"], **given)["dweight"]

    np.testing.assert_array_equal(found(slice(2, 4)), found(slice(2, 4), "f8"))
    assert not np.array_equal(found(slice(0, 2)), found(slice(0, 2), "f8"))
    if operation == "conv":
        together = batch(config, x, w, dy, (2, 2))
        for request in range(2):
            own = slice(2 * request, 2 * request + 2)
            assert together[request].tobytes() == found(own).tobytes()


@pytest.mark.parametrize(("samples", "channels", "size"), [(8, 64, 56), (64, 64, 14), (2, 256, 28)])
def test_memory_is_what_the_plan_says(samples: int, channels: int, size: int) -> None:
    x = numbers(1, samples, channels, size, size).astype("f4")
    dy, w = x.copy(), numbers(2, channels, channels, 3, 3).astype("f4")
    threads = get_threads()
    tracemalloc.start()
    try:
        engine.set_threads(1)
        specs = {n: (a.shape, "float32") for n, a in (("x", x), ("weight", w), ("dy", dy))}
        call, _ = engine.prepare("conv", "backward", {"padding": 1}, specs, ["dweight"])
        before = tracemalloc.get_traced_memory()[0]
        made = gradient({"padding": 1}, x, w, dy)
        peak = tracemalloc.get_traced_memory()[1] - before - made.nbytes
    finally:
        tracemalloc.stop()
        engine.set_threads(threads)
    assert peak <= call.cost(samples).workspace_bytes


def test_how_many_tiles_a_request_has_to_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def least(wanted: str, channels: int) -> int:
        axis = Axis(28, 3, 1, 1, 1, 1, 28)
        return filtering._least_tiles(
            Correlation((axis,) * 2, 1, channels, channels, "zeros", 4, wanted)
        )

    for work in (0, 8_000_000):
        monkeypatch.setattr(filtering, "LEAST_WORK", work)
        assert least("winograd", 128) == 1
        assert least("fastest", 128) == filtering.LEAST_TILES
        assert least("auto", 512) == filtering.LEAST_TILES
    # 128 times 128 weights of a tap.
    assert least("auto", 128) == 489
    monkeypatch.setattr(filtering, "LEAST_WORK", 0)
    assert least("auto", 128) == filtering.LEAST_TILES
