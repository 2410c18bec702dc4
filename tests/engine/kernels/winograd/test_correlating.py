"""Winograd's filtering against the plain sum: values, edges, layouts, bad numbers, and its error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.kernels.winograd import correlating
from engine.kernels.winograd.tiling import Tiling, filter_bytes, tilings, transforms

BY_NAME = {"algorithm": "winograd"}
MARGIN = 6
"""Errors above direct's that a shape may show; the promise is 8."""


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("padding", [0, 1, 2, [[3, 0], [0, 4]]])
@pytest.mark.parametrize("size", [(3, 3), (4, 9), (7, 30), (13, 70)])
def test_values_in_float64(size: tuple[int, int], padding: Any, layout: str) -> None:
    x, w, b = numbers(1, 2, 5, *size), numbers(2, 4, 5, 3, 3), numbers(3, 4)
    if layout == "NHWC":
        x, w = np.moveaxis(x, 1, -1), w.transpose(2, 3, 1, 0)
    config = {"padding": padding, "layout": layout}
    given = {"x": x, "weight": w, "bias": b}
    got = engine.forward("conv", config | BY_NAME, **given)["y"]
    want = engine.forward("conv", config | {"algorithm": "direct"}, **given)["y"]
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    dy = numbers(4, *want.shape)
    got = engine.backward("conv", config | BY_NAME, ["dx"], **given, dy=dy)["dx"]
    want = engine.backward("conv", config | {"algorithm": "direct"}, ["dx"], **given, dy=dy)["dx"]
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
@pytest.mark.parametrize("padding", [0, 1, [[2, 0], [0, 3], [1, 1]]])
@pytest.mark.parametrize(("depth", "size"), [(1, (4, 5, 6)), (3, (11, 9, 30)), (5, (6, 13, 35))])
def test_volumes_in_float64(
    depth: int, size: tuple[int, int, int], padding: Any, layout: str
) -> None:
    x, w = numbers(1, 2, 5, *size), numbers(2, 16, 5, depth, 3, 3)
    if layout == "NDHWC":
        x, w = np.moveaxis(x, 1, -1), w.transpose(2, 3, 4, 1, 0)
    config = {"padding": padding, "layout": layout}
    got = engine.forward("conv", config | BY_NAME, x=x, weight=w)["y"]
    want = engine.forward("conv", config | {"algorithm": "direct"}, x=x, weight=w)["y"]
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    dy = numbers(4, *want.shape)
    got = engine.backward("conv", config | BY_NAME, ["dx"], x=x, weight=w, dy=dy)["dx"]
    config = config | {"algorithm": "direct"}
    want = engine.backward("conv", config, ["dx"], x=x, weight=w, dy=dy)["dx"]
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCDHW", "NDHWC"])
def test_results_that_lie_apart_are_judged_as_others_are(layout: str) -> None:
    """Taps that fall on every second input are nine of a map of its own, between the numbers of x."""
    depth = (2,) * (len(layout) - 4)
    x, w = numbers(1, 2, 16, *depth, 61, 65), numbers(2, 16, 16, *(1 for _ in depth), 3, 3)
    if layout[-1] == "C":
        x, w = np.moveaxis(x, 1, -1), w.transpose(*range(2, w.ndim), 1, 0)
    x, w = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(w, np.float32)
    apart = [*(1 for _ in depth), 2, 2]
    config = {"stride": apart, "dilation": apart, "layout": layout}
    y = engine.forward("conv", config, x=x, weight=w)["y"]
    dy = numbers(3, *y.shape).astype(np.float32)
    got = engine.backward("conv", config, ["dx"], x=x, weight=w, dy=dy)["dx"]
    plain = config | {"algorithm": "direct"}
    want = engine.backward("conv", plain, ["dx"], x=x, weight=w, dy=dy)["dx"]
    assert not np.array_equal(got, want)
    np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


def test_the_plan_says_what_runs() -> None:
    def runs(algorithm: str, shape: tuple[int, ...], dtype: str = "float32", taps: int = 3) -> str:
        shapes = {"x": shape, "weight": (64, shape[1], taps, taps)}
        config = {"padding": 1, "algorithm": algorithm}
        return engine.plan("conv", config, shapes, dtype).report()["algorithm"]

    large, small = (1, 64, 56, 56), (1, 2, 5, 5)
    assert runs("auto", large) == runs("fastest", large) == runs("winograd", small) == "winograd"
    assert runs("auto", small) == runs("auto", large, "float64") == "direct"
    assert runs("direct", large) == runs("winograd", large, taps=5) == "direct"
    shapes = {"x": large, "weight": (64, 64, 3, 3)}
    assert engine.plan("conv_transpose", {}, shapes).report()["algorithm"] == "winograd"


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("where", ["x", "weight"])
def test_bad_numbers_touch_only_what_reads_them(bad: float, where: str) -> None:
    x, w = numbers(1, 2, 40, 30, 30).astype("f4"), numbers(2, 33, 40, 3, 3).astype("f4")
    {"x": x, "weight": w}[where][1, 2, 1, 1] = bad
    auto = engine.forward("conv", {"padding": 1}, x=x, weight=w)["y"]
    direct = engine.forward("conv", {"padding": 1, "algorithm": "direct"}, x=x, weight=w)["y"]
    finite = np.isfinite(direct)
    np.testing.assert_array_equal(np.isfinite(auto), finite)
    np.testing.assert_array_equal(auto[~finite], direct[~finite])
    np.testing.assert_allclose(
        auto[finite], direct[finite], rtol=1e-4, atol=1e-4 * 3e38 * (bad == 3e38) + 1e-4
    )


def test_no_samples() -> None:
    x, w = np.zeros((0, 64, 28, 28), np.float32), np.ones((64, 64, 3, 3), np.float32)
    assert engine.forward("conv", {}, x=x, weight=w)["y"].shape == (0, 64, 26, 26)


@pytest.mark.parametrize("rows", [(1, 2), (3,), (2, 0, 1)])
def test_the_same_bits_alone_and_in_a_batch_and_on_any_threads(rows: tuple[int, ...]) -> None:
    x, w = numbers(1, 3, 64, 60, 60).astype("f4"), numbers(2, 64, 64, 3, 3).astype("f4")
    whole = engine.forward("conv", {"padding": 1}, x=x, weight=w)["y"]
    start = 0
    for count in rows:
        part = engine.forward("conv", {"padding": 1}, x=x[start : start + count], weight=w)["y"]
        assert part.tobytes() == whole[start : start + count].tobytes()
        start += count


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("kind", ["normal", "positive"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("channels", "size"), [(32, 56), (64, 28), (128, 28), (256, 14), (512, 40)]
)
def test_error_against_direct(channels: int, size: int, seed: int, kind: str) -> None:
    """The largest error is within the margin of the direct sum's, with room to the promise."""
    rng = np.random.default_rng(seed)
    draw = rng.standard_normal if kind == "normal" else rng.random
    x = draw((1, channels, size, size)).astype(np.float32)
    w = draw((32, channels, 3, 3)).astype(np.float32)
    shapes = {"x": x.shape, "weight": w.shape}
    runs = engine.plan("conv", {"padding": 1}, shapes).report()["algorithm"]
    assert runs == "winograd"
    exact = engine.forward("conv", {"padding": 1}, x=x.astype("f8"), weight=w.astype("f8"))["y"]

    def error(algorithm: str) -> float:
        y = engine.forward("conv", {"padding": 1, "algorithm": algorithm}, x=x, weight=w)["y"]
        return float(np.abs(y - exact).max())

    assert error("auto") <= MARGIN * error("direct")


@pytest.mark.parametrize("channels", [16, 32, 42, 64])
def test_error_of_volumes_against_direct(channels: int) -> None:
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((1, channels, 9, 20, 20)).astype(np.float32)
    w = rng.standard_normal((16, channels, 3, 3, 3)).astype(np.float32)
    exact = engine.forward("conv", {"padding": 1}, x=x.astype("f8"), weight=w.astype("f8"))["y"]

    def error(algorithm: str) -> float:
        y = engine.forward("conv", {"padding": 1, "algorithm": algorithm}, x=x, weight=w)["y"]
        return float(np.abs(y - exact).max())

    assert error("auto") <= MARGIN * error("direct")


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
@pytest.mark.parametrize("size", [(28, 30), (4, 12, 12)])
def test_whole_numbers_stay_whole(operation: str, size: tuple[int, ...]) -> None:
    """A plain sum of small whole numbers makes no error, so eight times as much is none either."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (3, 32, *size)).astype("f4")
    w = rng.integers(-3, 4, (32, 32, *(3,) * len(size))).astype("f4")
    x[1] += 0.1
    config = {"padding": 1}
    assert engine.plan(operation, config, {"x": x.shape, "weight": w.shape}).plan.algorithm == (
        "winograd"
    )

    def both(x: np.ndarray, w: np.ndarray, dy: np.ndarray | None, **more: str) -> list[np.ndarray]:
        y = engine.forward(operation, {**config, **more}, x=x, weight=w)["y"]
        given = y.round() if dy is None else dy
        back = engine.backward(operation, {**config, **more}, x=x, weight=w, dy=given, wants=["dx"])
        return [y, given, back["dx"]]

    y, dy, dx = both(x, w, None)
    exact = both(x.astype("f8"), w.astype("f8"), dy.astype("f8"))
    for n in (0, 2):
        np.testing.assert_array_equal(y[n], exact[0][n])
        np.testing.assert_array_equal(dx[n], exact[2][n])
    # Its neighbours change no bit of the sample between them, which is not whole.
    assert y[1:2].tobytes() == both(x[1:2], w, dy[1:2])[0].tobytes()
    assert y[1].tobytes() != both(x, w, dy, algorithm="direct")[0][1].tobytes()


@pytest.mark.usefixtures("as_large")
def test_samples_that_are_mostly_zeros_are_summed_plainly() -> None:
    """A plain sum rounds nothing where it adds a zero: a single number gives the filters themselves."""
    x, w = np.zeros((4, 64, 30, 28), np.float32), numbers(2, 64, 64, 3, 3).astype("f4")
    x[0, 3, 7, 9] = 1
    x[1] = numbers(1, 64, 30, 28) * (np.random.default_rng(0).random((64, 30, 28)) < 0.02)
    x[2] = numbers(3, 64, 30, 28)
    config = {"padding": 1}
    y = engine.forward("conv", config, x=x, weight=w)["y"]
    np.testing.assert_array_equal(y[0, :, 6:9, 8:11], w[:, 3, ::-1, ::-1])
    sums = engine.forward("conv", {**config, "algorithm": "direct"}, x=x, weight=w)["y"]
    for n in (0, 1, 3):
        assert y[n].tobytes() == sums[n].tobytes()
    alone = engine.forward("conv", config, x=x[2:3], weight=w)["y"]
    assert y[2].tobytes() == alone[0].tobytes() != sums[2].tobytes()
    dx = engine.backward("conv", config, dy=x, x=x, weight=w, wants=["dx"])["dx"]
    np.testing.assert_array_equal(dx[0, :, 6:9, 8:11], w[3])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("outputs", "channels", "deep", "together"),
    [(24, 700, 1, 24), (512, 20, 1, 512), (32, 5, 3, 16), (9000, 2, 2, 9000)],
)
def test_filters_are_transformed(
    outputs: int, channels: int, deep: int, together: int, turned: bool
) -> None:
    w = numbers(1, outputs, channels, deep, 9)
    w = w[..., ::-1] if turned else w
    shapes = {"x": (1, channels, *(deep, 9, 9)), "weight": (outputs, channels, deep, 3, 3)}
    planned = engine.plan("conv", BY_NAME, shapes, "float64").plan.geometry.correlation
    plan = Tiling(planned, 2)
    object.__setattr__(plan, "together", together)
    found = correlating._transformed(plan, w)
    both = np.kron(transforms(2)[1], transforms(4)[1])
    want = np.einsum("pt,ockt->pkco", both, w)
    want = want.reshape(len(both), deep * channels, -1, together).swapaxes(1, 2)
    np.testing.assert_allclose(found, want.reshape(found.shape), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(64, 64), (128, 256), (100, 77)])
def test_transformed_filters_take_what_the_plan_counts(shape: tuple[int, int]) -> None:
    shapes = {"x": (1, shape[1], 56, 56), "weight": (*shape, 3, 3)}
    c = engine.plan("conv", {"padding": 1} | BY_NAME, shapes).plan.geometry.correlation
    found = correlating._transformed(tilings(c)[0], numbers(1, *shape, 1, 9).astype("f4"))
    memory = found
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    assert memory.nbytes == filter_bytes(c)
