"""Sums over rows of positions against gathered patches: values, runs, requests and outputs apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import engine
from engine.kernels.correlation import Correlation
from engine.kernels.direct import patch_sums, rowwise
from tests.engine.kernels.images import image, tensors


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers (N, 1, C, H, W), with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 2, -1)), -1, 2)


def layer(
    size: tuple[int, int],
    channels: int,
    outputs: int,
    itemsize: int = 8,
    samples: int = 3,
    stride: tuple[int, int] = (1, 1),
) -> tuple[Correlation, np.ndarray, np.ndarray]:
    c = image(
        size,
        (1, 1),
        (0, 0),
        stride,
        itemsize=itemsize,
        groups=1,
        channels=channels,
        outputs=outputs,
        channels_last=True,
    )
    x, _, _, dy = tensors(c, samples)
    return c, last(x), last(dy)


@pytest.mark.parametrize("run", [1024, 7])
@pytest.mark.parametrize("rows", [(1, 2), (3,), (0, 1, 0, 2)])
@pytest.mark.parametrize(("channels", "outputs"), [(13, 10), (5, 33), (1, 1)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (3, 2), (5, 7)])
def test_values(
    monkeypatch: pytest.MonkeyPatch,
    run: int,
    rows: tuple[int, ...],
    channels: int,
    outputs: int,
    stride: tuple[int, int],
) -> None:
    monkeypatch.setattr(rowwise, "MOST_RUN", run)
    c, x, dy = layer((4, 5), channels, outputs, stride=stride)
    got = np.full((len(rows), 1, outputs, channels, 1, 1), np.nan)
    want = np.full_like(got, np.nan)
    rowwise.backward_weight(c, x, dy, rows, got)
    patch_sums.backward_weight(c, x, dy, rows, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_more_weights_than_the_scratch_holds(
    monkeypatch: pytest.MonkeyPatch, stride: tuple[int, int]
) -> None:
    c, x, dy = layer((3, 3), 16, 40, stride=stride)
    want = np.zeros((1, 1, 40, 16, 1, 1))
    rowwise.backward_weight(c, x, dy, (3,), want)
    monkeypatch.setattr(rowwise, "PART_BYTES", 3 * 16 * 8)
    got = np.zeros_like(want)
    rowwise.backward_weight(c, x, dy, (3,), got)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_padding_is_left_to_others() -> None:
    c, _, _ = layer((3, 3), 512, 512, stride=(2, 2))
    assert rowwise.suits(c)
    high = replace(c.axes[0], high=1)
    assert not rowwise.suits(replace(c, axes=(high, c.axes[1])))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("weight_layout", ["OIHW", "HWIO"])
def test_the_same_bits_whoever_comes_along(weight_layout: str, stride: int) -> None:
    rng = np.random.default_rng(2)
    size = 8 * stride + 1
    x = rng.standard_normal((5, size, size, 200), np.float32)
    dy = rng.standard_normal((5, 9, 9, 400), np.float32)
    shape = (400, 200, 1, 1) if weight_layout == "OIHW" else (1, 1, 200, 400)
    weight = rng.standard_normal(shape, np.float32)
    config = {"layout": "NHWC", "weight_layout": weight_layout, "stride": stride}
    tensors = {"x": x, "weight": weight, "dy": dy}
    specs = {name: engine.TensorSpec(a.shape, "float32") for name, a in tensors.items()}
    call, _ = engine.prepare("conv", "backward", config, specs, ["dx", "dweight"])
    assert rowwise.suits(call.plan.geometry.correlation)
    together = engine.split(engine.run(call, tensors, (2, 3)), (2, 3))
    for own, found in zip((slice(0, 2), slice(2, 5)), together, strict=True):
        part = {"x": x[own], "weight": weight, "dy": dy[own]}
        alone = engine.backward("conv", config, ["dx", "dweight"], **part)
        for name, gradient in alone.items():
            assert gradient.tobytes() == np.ascontiguousarray(found[name]).tobytes()
    first = np.einsum(
        "nhwo,nhwc->oc", dy[:2].astype(float), x[:2, ::stride, ::stride].astype(float)
    )
    if weight_layout == "HWIO":
        first = first.T
    np.testing.assert_allclose(
        together[0]["dweight"].reshape(first.shape), first, rtol=1e-4, atol=1e-3
    )
