"""Sums over windows one apart, whose adjoint is sums of the same windows over the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.geometry import Axis
from engine.kernels.pools.plane_sums import PLANE_PART, SHORT, mirrored, plane_sum
from engine.kernels.pools.pooling import Pooling
from tests.engine.kernels.winograd.test_correlating import numbers


def rows(kernel: int, stride: int = 1, low: int = 0, high: int = 0) -> Axis:
    return Axis(9, kernel, stride, 1, low, high, (9 + low + high - kernel) // stride + 1)


def test_windows_that_are_no_further_apart_than_one_are_mirrored() -> None:
    found = mirrored(Pooling((rows(3, 1, 1, 0), rows(4, 1, 0, 2)), 5))
    assert found == Pooling((Axis(8, 3, 1, 1, 1, 2, 9), Axis(8, 4, 1, 1, 3, 1, 9)), 5)


@pytest.mark.parametrize("axis", [rows(3, 2), rows(1), rows(2, 1, 2, 0)])
def test_others_are_not(axis: Axis) -> None:
    assert mirrored(Pooling((axis,), 5)) is None


@pytest.mark.parametrize("layout", [None, "last"])
@pytest.mark.parametrize(
    "config",
    [
        {"kernel": 3, "padding": 1},
        {"kernel": 2},
        {"kernel": [1, 5], "padding": [0, 2], "count_include_pad": False},
        {"kernel": [5, 4], "padding": [[2, 0], [1, 2]]},
        {"kernel": [4, 3], "dilation": [2, 3], "padding": [3, 1]},
        {"kernel": 3, "divisor_override": 7},
    ],
)
@pytest.mark.parametrize("shape", [(3, 5, 14, 17), (1, 2, 1100, 900), (2, 20, 11, 12)])
def test_the_gradient_is_the_adjoint(
    shape: tuple[int, ...], config: dict[str, Any], layout: str | None
) -> None:
    x = numbers(1, *shape)
    config = {"stride": 1, **config}
    if layout == "last":
        x, config["layout"] = np.moveaxis(x, 1, -1), "NHWC"
    y = engine.forward("avg_pool", config, x=x)["y"]
    dy = numbers(2, *y.shape)
    dx = engine.backward("avg_pool", config, ["dx"], x=x, dy=dy)["dx"]
    np.testing.assert_allclose(np.vdot(dx, x), np.vdot(dy, y), 1e-9, 1e-9)
    # The gradient of one input alone.
    x[...] = 0
    x[(0, *(n // 2 for n in x.shape[1:]))] = 1
    y = engine.forward("avg_pool", config, x=x)["y"]
    dx = engine.backward("avg_pool", config, ["dx"], x=x, dy=dy)["dx"]
    np.testing.assert_allclose(dx[x == 1], np.vdot(dy, y), 1e-12, 1e-12)


@pytest.mark.parametrize(
    "size", [(7, 7), (1, SHORT - 1), (1, SHORT), (PLANE_PART // 64, 64), (3, PLANE_PART), (113, 97)]
)
def test_the_sums_of_a_sample_do_not_depend_on_where_it_stands(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3, 5, *size)).astype(np.float32)
    sums = plane_sum(x, False)
    exact = x.astype(np.float64).sum((2, 3), keepdims=True)
    np.testing.assert_allclose(sums, exact, atol=1e-6 * np.abs(x).sum((2, 3)).max())
    for n in range(3):
        room = np.empty(x[n].size + 5, np.float32)
        for shift in range(5):
            alone = room[shift : shift + x[n].size].reshape(1, 5, *size)
            alone[...] = x[n]
            assert plane_sum(alone, False).tobytes() == sums[n].tobytes()
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    np.testing.assert_allclose(
        plane_sum(last, True), exact, atol=1e-6 * np.abs(x).sum((2, 3)).max()
    )


@pytest.mark.parametrize("stride", [1, 91])
@pytest.mark.parametrize("size", [(91, 1), (91, 1, 1), (1, 91)])
def test_planes_one_number_across_are_summed_alike_in_any_company(
    size: tuple[int, ...], stride: int
) -> None:
    """The strides that NumPy tells of such an axis depend on how many samples there are."""
    x = np.random.default_rng(7).standard_normal((3, *size, 17)).astype(np.float32)
    config = {"kernel": size, "stride": stride, "layout": "NHWC" if len(size) == 2 else "NDHWC"}
    y = engine.forward("lp_pool", config, x=x)["y"]
    dy = np.ones_like(y)
    dx = engine.backward("lp_pool", config, x=x, dy=dy)["dx"]
    for n in range(3):
        one = slice(n, n + 1)
        alone = engine.forward("lp_pool", config, x=x[one])["y"]
        assert alone.tobytes() == y[one].tobytes()
        alone = engine.backward("lp_pool", config, x=x[one], dy=dy[one])["dx"]
        assert alone.tobytes() == dx[one].tobytes()


@pytest.mark.parametrize("shape", [(1, 224, 224, 16), (2, 1000, 300, 2), (3, 200, 301, 3)], ids=str)
@pytest.mark.parametrize("operation", ["adaptive_avg_pool", "avg_pool", "lp_pool"])
def test_sums_over_planes_are_as_exact_with_channels_last(
    operation: str, shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) + np.float32(1)
    config: dict[str, Any] = {"kernel": shape[1:3]}
    if operation == "adaptive_avg_pool":
        config = {"output_size": 1}
    exact = x.mean((1, 2), np.float64, keepdims=True)
    if operation == "lp_pool":
        config["p"] = 1.0
        exact = np.abs(x).sum((1, 2), np.float64, keepdims=True)
    got = engine.forward(operation, config | {"layout": "NHWC"}, x=x)["y"]
    np.testing.assert_allclose(got, exact, rtol=7e-7)
    for i in range(len(x)):
        alone = engine.forward(operation, config | {"layout": "NHWC"}, x=x[i : i + 1])["y"]
        assert alone.tobytes() == got[i : i + 1].tobytes()
