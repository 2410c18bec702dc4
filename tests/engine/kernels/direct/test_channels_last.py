"""Windows and filters read as they lie, with channels last, against plain sums with channels first."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import engine
from engine.arena import beside_scratch
from engine.kernels import dispatch, turning
from engine.kernels.direct import bordered, channels_last, single
from engine.threads import get_threads
from tests.engine.memory import assert_workspace_holds

Array = np.ndarray

SAMPLES = 5


class Layer:
    """A layer of one operation with channels last, and the same with channels first in float64."""

    def __init__(
        self, operation: str, weight_layout: str, config: dict[str, Any], *sizes: int
    ) -> None:
        channels, outputs, kernel, *spatial = sizes
        letters = "DHW"[3 - len(spatial) :]
        canonical = ("OI" if operation == "conv" else "IO") + letters
        first = (outputs, channels) if operation == "conv" else (channels, outputs)
        rng = np.random.default_rng(0)
        x = rng.standard_normal((SAMPLES, channels, *spatial), np.float32)
        w = rng.standard_normal((*first, *(kernel,) * len(spatial)), np.float32)
        bias = rng.standard_normal(outputs, np.float32)
        self.order = [canonical.index(letter) for letter in weight_layout]
        self.operation = operation
        self.plain = {"x": x, "weight": w, "bias": bias}
        self.given = {
            "x": np.ascontiguousarray(np.moveaxis(x, 1, -1)),
            "weight": np.ascontiguousarray(w.transpose(self.order)),
            "bias": bias,
        }
        self.config = config | {"layout": f"N{letters}C", "weight_layout": weight_layout}
        self.plain_config = config | {"layout": f"NC{letters}", "weight_layout": canonical}

    def plan(self) -> engine.Plan:
        shapes = {name: a.shape for name, a in self.given.items()}
        return engine.plan(self.operation, self.config, shapes).plan

    def expected(self, dy: Array | None = None) -> dict[str, Array]:
        wide = {name: a.astype(np.float64) for name, a in self.plain.items()}
        y = engine.forward(self.operation, self.plain_config, **wide)["y"]
        found = {"y": np.moveaxis(y, 1, -1)}
        if dy is not None:
            passed = np.moveaxis(dy, -1, 1).astype(np.float64)
            made = engine.backward(self.operation, self.plain_config, None, **wide, dy=passed)
            found["dx"] = np.moveaxis(made["dx"], 1, -1)
            found["dweight"] = made["dweight"].transpose(self.order)
        return found


LAYERS: dict[str, Any] = {
    "strides": ({"stride": 2, "padding": 1}, 24, 20, 3, 19, 14),
    "dilation": ({"dilation": 2, "padding": [[2, 0], [1, 3]]}, 17, 5, 3, 9, 12),
    "row": ({"padding": 2}, 16, 33, 5, 700),
    "volume": ({"stride": [1, 2, 1], "padding": 1}, 16, 18, 2, 5, 6, 7),
    "padding alone": ({"padding": 3, "stride": 4}, 16, 16, 3, 2, 2),
    "large": ({"padding": 1}, 64, 40, 5, 60, 33),
    "dense": ({}, 20, 30, 4, 4, 4),
}


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("ending", ["IO", "OI", "I", "O"])
def test_values(operation: str, flipped: bool, name: str, ending: str) -> None:
    config, *sizes = LAYERS[name]
    letters = "DHW"[3 - len(sizes[3:]) :]
    before = "".join(sorted(set("IO") - set(ending)))
    layer = Layer(operation, before + letters + ending, config | {"flip_kernel": flipped}, *sizes)
    y = engine.forward(operation, layer.config, **layer.given)["y"]
    dy = np.random.default_rng(1).standard_normal(y.shape, np.float32)
    got = {"y": y, **engine.backward(operation, layer.config, None, **layer.given, dy=dy)}
    for key, want in layer.expected(dy).items():
        np.testing.assert_allclose(got[key], want, 2e-4, 2e-4 * abs(want).max(), err_msg=key)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sample_has_the_same_bits_in_any_company(name: str, threads: int) -> None:
    config, *sizes = LAYERS[name]
    letters = "DHW"[3 - len(sizes[3:]) :]
    layer = Layer("conv", f"{letters}IO", config, *sizes)
    before = get_threads()
    engine.set_threads(threads)
    try:
        y = engine.forward("conv", layer.config, **layer.given)["y"]
        dy = np.random.default_rng(1).standard_normal(y.shape, np.float32)
        found = engine.backward("conv", layer.config, None, **layer.given, dy=dy)
    finally:
        engine.set_threads(before)
    for n in range(SAMPLES):
        own = layer.given | {"x": layer.given["x"][n : n + 1]}
        alone = engine.forward("conv", layer.config, **own)["y"]
        assert alone.tobytes() == y[n : n + 1].tobytes()
        dx = engine.backward("conv", layer.config, ["dx"], **own, dy=dy[n : n + 1])["dx"]
        assert dx.tobytes() == found["dx"][n : n + 1].tobytes()
    again = engine.backward("conv", layer.config, ["dweight"], **layer.given, dy=dy)
    assert again["dweight"].tobytes() == found["dweight"].tobytes()


@pytest.mark.parametrize("outputs", [300, 513])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_that_threads_share_have_the_bits_of_one_thread(
    outputs: int, dtype: type[np.floating]
) -> None:
    """Half of them are no whole number of columns that BLAS multiplies at a time."""
    rng, config = np.random.default_rng(0), {"layout": "NHWC", "algorithm": "direct"}
    x = rng.standard_normal((1, 12, 12, 64)).astype(dtype)
    w = rng.standard_normal((3, 3, 64, outputs)).astype(dtype)
    before, found = get_threads(), []
    try:
        for threads in (1, 2, 3):
            engine.set_threads(threads)
            y = engine.forward("conv", config, x=x, weight=w)["y"]
            dx = engine.backward("conv", config, ["dx"], x=x, weight=w, dy=y)["dx"]
            found.append(y.tobytes() + dx.tobytes())
    finally:
        engine.set_threads(before)
    assert len(set(found)) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["x", "weight", "bias"])
def test_numbers_that_are_not_finite_spoil_what_reads_them(where: str, bad: float) -> None:
    config, *sizes = LAYERS["strides"]
    layer = Layer("conv", "HWIO", config, *sizes)
    layer.given[where].flat[7] = bad
    # The same place of the plain layout.
    if where == "x":
        layer.plain["x"] = np.moveaxis(layer.given["x"], -1, 1)
    elif where == "weight":
        layer.plain["weight"] = layer.given["weight"].transpose(np.argsort(layer.order))
    with np.errstate(invalid="ignore"):
        y = engine.forward("conv", layer.config, **layer.given)["y"]
        want = layer.expected()["y"]
    assert np.array_equal(np.isfinite(y), np.isfinite(want))
    assert np.array_equal(np.isnan(y), np.isnan(want))


def test_weights_that_end_with_channels_are_read_tap_by_tap() -> None:
    config, *sizes = LAYERS["strides"]
    found = {}
    for order in map("".join, permutations("HWIO")):
        c = Layer("conv", order, config, *sizes).plan().geometry.correlation
        found[order] = dispatch.goes_tap_by_tap(c)
    assert {order for order, goes in found.items() if goes} == {o for o in found if o[-1] in "IO"}


@pytest.mark.parametrize("order", ["HWIO", "OHWI"])
def test_weights_in_the_order_of_windows_are_not_copied(order: str) -> None:
    config, *sizes = LAYERS["strides"]
    layer = Layer("conv", order, config, *sizes)
    geometry = layer.plan().geometry
    found = geometry.weights(layer.given["weight"], adjoint=False)
    assert np.shares_memory(found, layer.given["weight"])


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("order", list(map("".join, permutations("HWIO"))))
def test_weights_tap_by_tap(order: str, flipped: bool) -> None:
    axes = ["OIHW".index(letter) for letter in order]
    lain = np.random.default_rng(0).standard_normal([(40, 30, 3, 2)[a] for a in axes], np.float32)
    weights = lain.transpose(np.argsort(axes))
    weights = np.flip(weights, (2, 3)) if flipped else weights
    found = turning.tap_by_tap(weights)
    np.testing.assert_array_equal(found[0], np.moveaxis(weights, 1, -1).reshape(40, -1))


@pytest.mark.parametrize("order", ["HWIO", "OHWI"])
def test_weights_that_run_backwards_are_copied_for_products(order: str) -> None:
    """Of one channel they are a view even so, which BLAS does not take."""
    axes = ["OIHW".index(letter) for letter in order]
    lain = np.zeros([(40, 1, 3, 2)[a] for a in axes], np.float32)
    weights = np.flip(lain.transpose(np.argsort(axes)), (2, 3))
    assert min(turning.tap_by_tap(weights).strides[1:]) > 0


def test_a_dense_layer_multiplies_weights_as_they_lie() -> None:
    config, *sizes = LAYERS["dense"]
    layer = Layer("conv", "HWIO", config, *sizes)
    geometry = layer.plan().geometry
    assert single.window(geometry.correlation) is not None
    for adjoint in (False, True):
        found = geometry.weights(layer.given["weight"], adjoint=adjoint)
        assert np.shares_memory(found, layer.given["weight"])


@pytest.mark.parametrize("order", ["HWIO", "OHWI", "HWOI"])
@pytest.mark.parametrize("action", ["forward", "backward"])
def test_memory_is_what_the_plan_counts(traced: None, order: str, action: str) -> None:  # noqa: ARG001
    layer = Layer("conv", order, {"stride": 2, "padding": 1}, 160, 200, 3, 40, 40)
    given, before = dict(layer.given), beside_scratch()
    if action == "backward":
        given["dy"] = np.ones((SAMPLES, 20, 20, 200), np.float32)
    assert_workspace_holds("conv", action, layer.config, given)
    assert beside_scratch() == before


def test_few_channels_go_another_way() -> None:
    layer = Layer("conv", "HWIO", {"padding": 1}, 3, 64, 3, 20, 20)
    c = layer.plan().geometry.correlation
    assert channels_last.suits(c)
    assert not dispatch.goes_tap_by_tap(c)


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize("order", ["WIO", "OWI", "WOI", "IWO"])
def test_padding_that_is_a_whole_window_is_read_in_the_order_of_its_weights(
    mode: str, order: str
) -> None:
    config = {"stride": 80, "padding": 80, "padding_mode": mode}
    layer = Layer("conv", order, config, 24, 8, 80, 300)
    y = engine.forward("conv", layer.config, **layer.given)["y"]
    dy = np.random.default_rng(1).standard_normal(y.shape, np.float32)
    assert bordered.suits(layer.plan().geometry.correlation)
    got = engine.backward("conv", layer.config, ["dx"], **layer.given, dy=dy)["dx"]
    np.testing.assert_allclose(got, layer.expected(dy)["dx"], 1e-4, 1e-3)


def test_inputs_between_windows_are_not_copied() -> None:
    layer = Layer("conv", "HWIO", {"stride": 3}, 32, 32, 2, 20, 20)
    c = layer.plan().geometry.correlation
    assert not dispatch.goes_tap_by_tap(c)
    assert dispatch.plain_weight(c) is not channels_last.backward_weight
