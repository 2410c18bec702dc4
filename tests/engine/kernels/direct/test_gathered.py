"""Plain sums: how BLAS is given 1×1 layers, and how samples are shared by threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.geometry import Axis
from engine.kernels import nan
from engine.kernels.correlation import Correlation
from engine.kernels.direct import gathered
from engine.threads import get_threads
from tests.engine.kernels.winograd.test_correlating import numbers

RTOL, ATOL = 1e-10, 1e-9


def pointwise(channels: int, size: int, itemsize: int = 4) -> Correlation:
    axis = Axis(size, 1, 1, 1, 0, 0, size)
    return Correlation((axis, axis), 1, channels, 64, "zeros", itemsize)


@pytest.mark.parametrize(
    ("channels", "size", "packed"),
    [
        (64, 56, False),
        (96, 50, False),
        (97, 50, True),
        (64, 32, True),
        (63, 32, False),
        (64, 90, False),
        (64, 91, True),
        (63, 200, False),
    ],
)
def test_where_products_of_a_1x1_layer_have_their_operands_copied(
    channels: int, size: int, packed: bool
) -> None:
    assert pointwise(channels, size).packed is packed


@pytest.mark.parametrize("sizes", [(2, 64, 70), (3, 100, 33), (2, 40, 64)])
@pytest.mark.parametrize("size", [(32, 32), (5, 7), (64, 128)])
def test_a_1x1_layer_is_a_product(size: tuple[int, int], sizes: tuple[int, int, int]) -> None:
    samples, channels, outputs = sizes
    x, w = numbers(1, samples, channels, *size), numbers(2, outputs, channels, 1, 1)
    dy = numbers(3, samples, outputs, *size)
    y = engine.forward("conv", {}, x=x, weight=w)["y"]
    found = engine.backward("conv", {}, ["dx", "dweight"], x=x, weight=w, dy=dy)
    matrix = w[:, :, 0, 0]
    np.testing.assert_allclose(y, np.einsum("oc,nchw->nohw", matrix, x), RTOL, ATOL)
    np.testing.assert_allclose(found["dx"], np.einsum("oc,nohw->nchw", matrix, dy), RTOL, ATOL)
    want = np.einsum("nohw,nchw->oc", dy, x)[..., None, None]
    np.testing.assert_allclose(found["dweight"], want, RTOL, ATOL)


@pytest.mark.parametrize(
    ("config", "taps"), [({}, 1), ({"stride": 2, "padding": 1}, 3), ({"groups": 2}, 1)]
)
@pytest.mark.parametrize("samples", [1, 7, 16, 17])
@pytest.mark.usefixtures("shared")
def test_bits_do_not_depend_on_who_shares_a_block(
    samples: int, config: dict[str, Any], taps: int
) -> None:
    x = numbers(1, samples, 128, 14, 14).astype("f4")
    w = numbers(2, 128, 128 // config.get("groups", 1), taps, taps).astype("f4")
    threads = get_threads()
    try:
        engine.set_threads(1)
        alone = [
            engine.forward("conv", config, x=x[n : n + 1], weight=w)["y"] for n in range(samples)
        ]
        for count in (1, 2, 3):
            engine.set_threads(count)
            y = engine.forward("conv", config, x=x, weight=w)["y"]
            assert y.tobytes() == b"".join(each.tobytes() for each in alone)
    finally:
        engine.set_threads(threads)


NEGATIVE_NAN = np.array(0xFFC00001, np.uint32).view(np.float32)
SPOILT: dict[str, dict[str, tuple[Any, Any]]] = {
    "x is NaN": {"x": ((1, 0, 5), NEGATIVE_NAN)},
    "a weight is NaN": {"weight": ((3, 0, 5), NEGATIVE_NAN)},
    "a bias is NaN": {"bias": (3, NEGATIVE_NAN)},
    "infinity by zero": {"x": ((1, 0, 5), np.inf), "weight": (..., 0)},
    "a bias against a sum": {"x": (..., np.inf), "weight": (..., 1), "bias": (..., -np.inf)},
    "products beyond the range": {"x": (..., 1e20), "weight": (..., [1e20, -1e20] * 5)},
}


@pytest.mark.parametrize("spoil", [None, *SPOILT])
def test_results_are_looked_at_only_where_they_may_be_nan(
    spoil: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def settle(array: np.ndarray) -> None:
        looked.append(array.size)
        nan.settle(array)

    monkeypatch.setattr(gathered, "settle", settle)
    monkeypatch.setattr(gathered, "LEAST_MADE", 0)
    rng = np.random.default_rng(0)
    sizes = ((2, 1, 400), (32, 1, 10), (32,))
    names = ("x", "weight", "bias")
    given = {
        name: rng.standard_normal(size, np.float32) for name, size in zip(names, sizes, strict=True)
    }
    for name, (place, number) in SPOILT.get(spoil or "", {}).items():
        given[name][place] = number
    y = engine.forward("conv", {"stride": 2}, **given)["y"]
    assert bool(looked) == bool(spoil)
    assert np.isnan(y).any() == bool(spoil)
    assert set(y.view(np.uint32)[np.isnan(y)].tolist()) <= {0x7FC00000}
