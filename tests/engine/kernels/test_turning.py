"""Weights in another order of their axes, against NumPy's own copy of them."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import engine
from engine.arena import PART_BYTES, beside_scratch
from engine.kernels import turning
from engine.kernels.turning import in_rows, laid_out

SHAPES = [(64, 48, 5, 5), (40, 17, 1, 300), (512, 256, 1, 1), (130, 3, 17, 31), (1, 70, 31, 31)]


def view(shape: tuple[int, ...], order: str, flipped: bool) -> np.ndarray:
    """Weights (O, I, H, W) that lie in memory as `order` says."""
    axes = ["OIHW".index(letter) for letter in order]
    lain = np.random.default_rng(0).standard_normal([shape[a] for a in axes], np.float32)
    found = lain.transpose(np.argsort(axes))
    return np.flip(found, (2, 3)) if flipped else found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["".join(order) for order in permutations("OIHW")])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_weights_are_in_the_order_of_their_axes(
    shape: tuple[int, ...], order: str, flipped: bool, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        monkeypatch.setattr(turning, "BLOCK", 100)
        monkeypatch.setattr(turning, "ROWS_BYTES", 5000)
    weights, before = view(shape, order, flipped), beside_scratch()
    found = laid_out(weights)
    assert found.flags.c_contiguous
    assert found.tobytes() == weights.tobytes()
    assert beside_scratch() == before


def test_weights_in_order_are_not_copied() -> None:
    weights = view((64, 64, 3, 3), "OIHW", flipped=False)
    assert laid_out(weights) is weights


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 512, 70, 4, 4),
        (1, 96, 90, 5, 4),
        (1, 40, 33, 4, 4, 8),
        (2, 64, 300, 2, 4),
        (1, 1 << 16, 1, 2, 2),
    ],
    ids=str,
)
def test_residues_have_their_taps_in_rows(shape: tuple[int, ...], dtype: str) -> None:
    weights, before = (
        np.random.default_rng(0).standard_normal(shape).astype(dtype),
        beside_scratch(),
    )
    steps = (2, 3, 1)[: len(shape) - 3]
    residues: list[tuple[Any, ...]] = [
        tuple(
            slice(last - size, None, -step)
            for last, size, step in zip(at, shape[3:], steps, strict=True)
        )
        for at in product(*map(range, steps))
    ]
    for found, taps in zip(in_rows(weights, residues), residues, strict=True):
        np.testing.assert_array_equal(found, weights[..., *taps].swapaxes(1, 2))
        assert found.flags.c_contiguous
    assert beside_scratch() == before


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("order", ["HWIO", "IOHW", "OIHW"])
@pytest.mark.parametrize(("size", "channels", "outputs"), [(1, 700, 300), (7, 96, 640), (9, 5, 3)])
def test_pointwise_layers_read_weights_in_any_order(
    operation: str, layout: str, order: str, size: int, channels: int, outputs: int
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, channels, size, size), np.float32)
    if layout == "NHWC":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    sizes = {"O": outputs, "I": channels, "H": 1, "W": 1}
    weight = rng.standard_normal([sizes[axis] for axis in order], np.float32)
    config = {"layout": layout, "weight_layout": order}
    given = {"x": x, "weight": weight, "bias": rng.standard_normal(outputs, np.float32)}
    y = engine.forward(operation, config, **given)["y"]
    dy = rng.standard_normal(y.shape, np.float32)
    got = {"y": y, **engine.backward(operation, config, None, **given, dy=dy)}
    a, e, w = (t.astype(np.float64) for t in (x, dy, weight))
    spatial = "nihw" if layout == "NCHW" else "nhwi"
    upstream, named = spatial.replace("i", "o"), order.lower().replace("h", "y").replace("w", "z")
    want = {
        "y": np.einsum(f"{spatial},{named}->{upstream}", a, w)
        + given["bias"].reshape(-1, *(1, 1) * (layout == "NCHW")),
        "dx": np.einsum(f"{upstream},{named}->{spatial}", e, w),
        "dweight": np.einsum(
            f"{spatial},{upstream}->{named.replace('y', '').replace('z', '')}", a, e
        ),
        "dbias": np.einsum(f"{upstream}->o", e),
    }
    want["dweight"] = want["dweight"].reshape(weight.shape)
    for name, found in got.items():
        np.testing.assert_allclose(found, want[name], rtol=1e-4, atol=2e-4, err_msg=name)
    alone = engine.forward(operation, config, x=x[1:2], weight=weight, bias=given["bias"])["y"]
    assert alone.tobytes() == y[1:2].tobytes()


@pytest.mark.parametrize(
    "shape", [(26_000, 3, 2, 2), (40, 70, 3, 4), (7, 1, 2, 2), (60_000, 1, 3, 4)]
)
@pytest.mark.parametrize("order", ["OIHW", "HWIO", "OHWI", "IHWO"])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_taps_before_outputs_are_what_residues_have(
    shape: tuple[int, ...], order: str, last: bool, asked: list[int]
) -> None:
    weights = view(shape, order, flipped=False)
    taken = [(slice(1, None, -1), slice(1, None, 2)), (slice(1, 2), slice(None, 0, -1))]
    found = turning.taps_before_outputs(weights, taken, channels_last=last)
    for taps, array in zip(taken, found, strict=True):
        assert (np.moveaxis(array, 0, -1) if last else array).flags.c_contiguous
        np.testing.assert_array_equal(array, weights[(..., *taps)].transpose(1, 2, 3, 0))
    assert max(asked, default=0) <= PART_BYTES
