"""Gradients of inputs that padding repeats, against those of inputs that NumPy padded."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest

import engine
from engine import calls
from engine.kernels import dispatch, weight_bytes
from engine.kernels.direct import bordered

MODES: dict[str, Literal["reflect", "edge", "wrap"]] = {
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}

LAYERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1-D": ((2, 4, 9), (3, 4, 3), {"padding": [[2, 1]]}),
    "2-D": ((2, 2, 6, 7), (5, 2, 3, 2), {"padding": [[1, 2], [0, 3]]}),
    "3-D": ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), {"padding": [[1, 1], [2, 0], [1, 2]]}),
    "as much as there is": ((1, 1, 5, 4), (1, 1, 4, 3), {"padding": [[4, 4], [3, 3]]}),
    "strided": ((2, 3, 11, 8), (4, 3, 3, 3), {"padding": 2, "stride": [3, 2]}),
    "windows apart": ((1, 2, 9, 9), (2, 2, 2, 1), {"padding": [[3, 4], [2, 2]], "stride": [4, 3]}),
    "dilated": ((1, 2, 9, 8), (2, 2, 3, 2), {"padding": 3, "dilation": [2, 3]}),
    "depthwise": ((2, 6, 40, 36), (6, 1, 5, 5), {"padding": 2, "groups": 6}),
    "folded": ((1, 3, 20, 20), (40, 3, 5, 5), {"padding": 2, "stride": 2}),
}


@pytest.fixture(params=["by size", "always"], autouse=True)
def _strips(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small maps are scattered unless told otherwise."""
    if request.param == "always":
        monkeypatch.setattr(bordered, "FEW_COLUMNS", 0)
        request.getfixturevalue("as_large")
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cached in (dispatch.input_kernel, weight_bytes.rearranged_bytes, calls._cost):
        cached.cache_clear()


def padded_gradient(
    x: np.ndarray, w: np.ndarray, dy: np.ndarray, config: dict[str, Any], mode: str
) -> np.ndarray:
    """The gradient of an input padded beforehand, each number's added to that which it repeats."""
    sizes, padding = x.shape[2:], config["padding"]
    pairs = [(padding, padding)] * len(sizes) if isinstance(padding, int) else padding
    outside = [(0, 0), (0, 0), *pairs]
    given = {"x": np.pad(x, outside, MODES[mode]), "weight": w, "dy": dy}
    dx = engine.backward("conv", {**config, "padding": 0, "algorithm": "direct"}, ["dx"], **given)
    places = np.pad(np.arange(x[0, 0].size).reshape(sizes), pairs, MODES[mode]).reshape(-1)
    found = np.zeros((*x.shape[:2], x[0, 0].size))
    for own, added in zip(
        found.reshape(-1, found.shape[-1]), dx["dx"].reshape(-1, places.size), strict=True
    ):
        np.add.at(own, places, added)
    return found.reshape(x.shape)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layer", LAYERS)
def test_values(layer: str, mode: str, last: bool) -> None:
    size, taps, config = LAYERS[layer]
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(size), rng.standard_normal(taps)
    given = {**config, "padding_mode": mode}
    dy = rng.standard_normal(engine.forward("conv", given, x=x, weight=w)["y"].shape)
    expected = padded_gradient(x, w, dy, config, mode)
    if last:
        spatial = "DHW"[3 - len(size[2:]) :]
        given |= {"layout": f"N{spatial}C", "weight_layout": f"OI{spatial}"}
        x, dy = (np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, dy))
    found = engine.backward("conv", given, ["dx"], x=x, weight=w, dy=dy)["dx"]
    found = np.moveaxis(found, -1, 1) if last else found
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_bits_are_the_same_alone_and_with_others(mode: str) -> None:
    rng, config = np.random.default_rng(1), {"padding": 3, "padding_mode": mode}
    x, w, dy = (
        rng.standard_normal(size, np.float32)
        for size in ((40, 16, 30, 30), (8, 16, 7, 7), (40, 8, 30, 30))
    )
    together = engine.backward("conv", config, ["dx"], x=x, weight=w, dy=dy)["dx"]
    for n in (0, 7, 39):
        own = slice(n, n + 1)
        alone = engine.backward("conv", config, ["dx"], x=x[own], weight=w, dy=dy[own])["dx"]
        assert alone.tobytes() == together[own].tobytes()


def test_small_maps_are_scattered_and_large_ones_are_not() -> None:
    ways = []
    for size in (20, 60):
        specs = {"x": ((1, 16, size, size), "float32"), "weight": ((8, 16, 3, 3), "float32")}
        config = {"padding": 1, "padding_mode": "circular"}
        call, _ = engine.prepare("conv", "forward", config, specs)
        ways.append(bordered.suits(call.plan.geometry.correlation))
    assert ways == [bordered.FEW_COLUMNS == 0, True]


def test_padding_that_few_windows_read_is_not_laid_out() -> None:
    far = 10**9
    config = {"padding": far, "stride": far, "padding_mode": "replicate"}
    x, w, dy = np.array([[[5.0, 6.0]]]), np.ones((1, 1, 1)), np.array([[[1.0, 2.0, 3.0]]])
    tracemalloc.start()
    try:
        found = engine.backward("conv", config, x=x, weight=w, dy=dy)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found["dx"].tolist() == [[[3.0, 3.0]]]
    assert found["dweight"].tolist() == [[[33.0]]]
    assert peak < 6 << 20
