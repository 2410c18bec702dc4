"""Which depthwise layers go pixel by pixel, and that they give what they give with channels last."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.kernels.depthwise import bounds
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
    assert (bounds.pay(c), bounds.pay_for_weight(c)) == (forward, weight)


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
    last = engine.backward("conv", nhwc, None, weight=w, **turned)
    last["dx"] = np.moveaxis(last["dx"], -1, 1)
    for name, gradient in first.items():
        np.testing.assert_allclose(last[name], gradient, rtol=1e-4, atol=1e-3)
    for n in range(3):
        alone = engine.backward(
            "conv", config, ["y", "dx"], x=x[n : n + 1], weight=w, dy=y[n : n + 1]
        )
        assert alone["y"].tobytes() == y[n : n + 1].tobytes()
        assert alone["dx"].tobytes() == first["dx"][n : n + 1].tobytes()


@pytest.mark.parametrize(
    ("last", "size", "kernel", "stride", "groups", "forward", "weight"),
    [
        (True, (8, 14, 14), 3, 1, 96, True, True),
        (True, (8, 14, 14), 3, 1, 32, True, False),
        (True, (8, 14, 14), 3, 2, 32, False, True),
        (True, (8, 14, 14), 5, 1, 96, True, False),
        (True, (4, 4, 4), 3, 1, 32, False, False),
        (True, (8, 14, 14), 7, 1, 96, False, False),
        (False, (4, 7, 7), 3, 1, 96, True, True),
        (False, (4, 7, 7), 5, 1, 96, True, False),
        (False, (4, 7, 7), 3, 1, 32, False, False),
        (False, (4, 8, 8), 3, 1, 96, False, False),
        (False, (8, 28, 28), 3, 1, 96, False, False),
    ],
)
def test_volumes_pay(
    last: bool,
    size: tuple[int, int, int],
    kernel: int,
    stride: int,
    groups: int,
    forward: bool,
    weight: bool,
) -> None:
    pads, steps = (kernel // 2,) * 2, (stride,) * 3
    c = image(size, (kernel,) * 3, pads, steps, itemsize=4, groups=groups, channels_last=last)
    assert (bounds.pay(c), bounds.pay_for_weight(c)) == (forward, weight)


@pytest.mark.parametrize(
    ("kernel", "stride", "groups"), [(3, 1, 96), (3, 2, 96), ((1, 3, 3), 1, 80)]
)
@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
def test_volumes_are_what_their_samples_are_alone(
    kernel: int | tuple[int, ...], stride: int, groups: int, layout: str
) -> None:
    config = {"groups": groups, "padding": 1, "stride": stride, "layout": layout}
    rng = np.random.default_rng(2)
    taps = (kernel,) * 3 if isinstance(kernel, int) else kernel
    x = rng.standard_normal((3, groups, 5, 7, 7)).astype(np.float32)
    w = rng.standard_normal((groups, 1, *taps)).astype(np.float32)
    if layout == "NDHWC":
        config["weight_layout"] = "OIDHW"
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    y = engine.forward("conv", config, x=x, weight=w)["y"]
    exact = {"x": x.astype(np.float64), "weight": w.astype(np.float64)}
    np.testing.assert_allclose(
        y, engine.forward("conv", config, **exact)["y"], rtol=1e-4, atol=1e-4
    )
    found = engine.backward("conv", config, x=x, weight=w, dy=y)
    wanted = engine.backward("conv", config, None, **exact, dy=y.astype(np.float64))
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, wanted[name], rtol=1e-3, atol=1e-3)
    for n in range(3):
        of = slice(n, n + 1)
        alone = engine.backward("conv", config, ["y", "dx"], x=x[of], weight=w, dy=y[of])
        assert alone["y"].tobytes() == y[of].tobytes()
        assert alone["dx"].tobytes() == found["dx"][of].tobytes()
