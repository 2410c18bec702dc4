"""Which kernel computes what; whichever it is, every NaN comes out with the same bits."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import engine
from engine.geometry import Axis, strided_out
from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise import banding, planes
from engine.kernels.direct import flat, pointwise, shifts
from tests.engine.kernels.images import tensors


def layer(
    size: int,
    kernel: int,
    stride: int,
    groups: int,
    channels: int,
    outputs: int,
    last: bool = False,
    mode: str = "zeros",
) -> Correlation:
    axis = Axis(size, kernel, stride, 1, 1, 1, strided_out(size, kernel, stride, 1, 1))
    return Correlation((axis,) * 2, groups, channels, outputs, mode, 4, "auto", last)


LAYERS = {
    "winograd": layer(56, 3, 1, 1, 64, 64),
    "banded": layer(64, 3, 1, 40, 1, 1),
    "flat": layer(9, 3, 1, 1, 3, 16),
    "joined": layer(7, 3, 1, 1, 192, 192),
    "pixels": layer(9, 3, 1, 64, 1, 1, last=True),
    "direct": layer(9, 3, 2, 2, 3, 20, mode="reflect"),
    "single": Correlation((Axis(1, 1, 1, 1, 0, 0, 1),) * 2, 3, 6, 5, "zeros", 4),
}


@pytest.mark.usefixtures("may_share")
@pytest.mark.parametrize("kernel", LAYERS)
def test_layers_go_to_their_kernels(kernel: str) -> None:
    c = LAYERS[kernel]
    assert dispatch._forward(c) is {**dispatch.PLAIN, "winograd": dispatch._winograd}[kernel]
    assert dispatch.forward_algorithm(c) == ("winograd" if kernel == "winograd" else "direct")


@pytest.mark.parametrize(
    ("c", "kernel"),
    [
        (layer(56, 3, 1, 144, 1, 1), planes),
        (layer(56, 3, 2, 144, 1, 1), planes),
        (layer(10, 3, 1, 8, 1, 1), flat),
        (layer(64, 8, 8, 144, 1, 1), shifts),
    ],
    ids=["many planes", "stride 2", "few places", "stride 8"],
)
def test_gradients_of_depthwise_weights_go_to_their_kernels(
    c: Correlation, kernel: ModuleType
) -> None:
    assert dispatch.plain_weight(c) is kernel.backward_weight


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("way", "small", "large"),
    [
        (banding, layer(14, 3, 1, 8, 1, 1), layer(64, 3, 1, 96, 1, 1)),
        (pointwise, layer(12, 1, 1, 1, 8, 16), layer(56, 1, 1, 1, 64, 256)),
        (shifts, layer(9, 3, 1, 1, 4, 8), layer(56, 3, 1, 1, 64, 64)),
    ],
    ids=["bands", "runs", "shifts"],
)
def test_ways_of_many_calls_are_for_layers_with_work_for_them(
    way: ModuleType,
    small: Correlation,
    large: Correlation,
    in_place: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(way, "multiplies_in_place", lambda: in_place)
    assert not way.pay(small)
    assert way.pay(large)


def test_bounds_are_those_of_the_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = {
        banding: layer(28, 3, 1, 64, 1, 1),
        pointwise: layer(64, 1, 1, 1, 16, 200),
        shifts: layer(28, 3, 1, 1, 16, 64),
    }
    for way, c in layers.items():
        for in_place in (False, True):
            monkeypatch.setattr(way, "multiplies_in_place", lambda found=in_place: found)
            assert way.pay(c) == in_place


def test_all_plans_of_a_layer_have_one_geometry() -> None:
    """Whatever is kept by it is then found without comparing its integers."""
    shapes = {"x": (1, 3, 11, 13), "weight": (4, 3, 3, 3), "dy": (1, 4, 9, 11)}
    specs = {name: engine.TensorSpec(shape, "float32") for name, shape in shapes.items()}
    forward = {name: specs[name] for name in ("x", "weight")}
    there, _ = engine.prepare("conv", "forward", {}, forward)
    back, _ = engine.prepare("conv", "backward", {}, specs)
    assert there.plan.geometry.correlation is back.plan.geometry.correlation


STRIDED = {
    "folded": layer(17, 3, 2, 1, 3, 16),
    "stuffed": layer(16, 3, 2, 4, 1, 1),
    "by residues": layer(9, 4, 2, 1, 8, 4),
}


@pytest.mark.parametrize("name", [*LAYERS, *STRIDED])
def test_every_nan_has_the_same_bits(name: str) -> None:
    c = (LAYERS | STRIDED)[name]
    x, w, bias, dy = (array.astype(np.float32) for array in tensors(c, 2))
    # Two NaN with a sign and a payload, and infinities that cancel to one more.
    odd = np.array([0xFFC00001, 0x7FC12345], np.uint32).view(np.float32)
    for numbers in (x, dy):
        numbers.reshape(-1)[[0, -1]] = odd
        numbers.reshape(-1)[[7, 9]] = np.inf, -np.inf
    bias[0, 0] = odd[0]
    y, dx = np.empty_like(dy), np.empty_like(x)
    with np.errstate(invalid="ignore"):
        dispatch.correlate(c, x, w, bias, y)
        dispatch.correlate_input(c, dy, w, dx)
    for made in (y, dx):
        assert set(made[np.isnan(made)].view(np.uint32).tolist()) == {0x7FC00000}
