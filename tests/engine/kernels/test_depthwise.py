"""Which depthwise layers go pixel by pixel, and that they give what they give with channels last."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.kernels import depthwise
from tests.engine.kernels.images import image


@pytest.mark.parametrize(
    ("size", "kernel", "groups", "forward", "weight"),
    [
        (14, 3, 96, True, True),
        (14, 3, 48, False, False),
        (16, 3, 96, False, False),
        (28, 3, 96, False, False),
        (14, 7, 96, True, False),
        (7, 7, 96, True, True),
        (15, 11, 96, False, False),
    ],
)
def test_small_maps_of_many_channels_pay(
    size: int, kernel: int, groups: int, forward: bool, weight: bool
) -> None:
    c = image((size,) * 2, (kernel,) * 2, (kernel // 2,) * 2, itemsize=4, groups=groups)
    assert (depthwise.pay(c), depthwise.pay_for_weight(c)) == (forward, weight)


@pytest.mark.parametrize(("size", "kernel", "stride"), [(14, 3, 1), (7, 7, 1), (28, 5, 2)])
def test_small_maps_of_many_channels_are_turned(size: int, kernel: int, stride: int) -> None:
    config = {"groups": 96, "padding": kernel // 2, "stride": stride}
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 96, size, size)).astype(np.float32)
    w = rng.standard_normal((96, 1, kernel, kernel)).astype(np.float32)
    y = engine.forward("conv", config, x=x, weight=w)["y"]
    first = engine.backward("conv", config, x=x, weight=w, dy=y)
    nhwc = {**config, "layout": "NHWC", "weight_layout": "OIHW"}
    turned = {
        name: np.ascontiguousarray(np.moveaxis(a, 1, -1)) for name, a in (("x", x), ("dy", y))
    }
    there = engine.forward("conv", nhwc, x=turned["x"], weight=w)["y"]
    assert np.moveaxis(there, -1, 1).tobytes() == y.tobytes()
    last = engine.backward("conv", nhwc, weight=w, **turned)
    last["dx"] = np.moveaxis(last["dx"], -1, 1)
    for name, gradient in first.items():
        np.testing.assert_allclose(last[name], gradient, rtol=1e-4, atol=1e-3)
    for n in range(3):
        alone = engine.backward(
            "conv", config, ["y", "dx"], x=x[n : n + 1], weight=w, dy=y[n : n + 1]
        )
        assert alone["y"].tobytes() == y[n : n + 1].tobytes()
        assert alone["dx"].tobytes() == first["dx"][n : n + 1].tobytes()
