"""What the well-known teaching codes compute, written down once more, against the engine.

Three families, each in its own conventions:

* layers on channels-last images (N, H, W, C) with weights (taps, in, out), zeros between the taps
  counted from 0 (so dilation 0 here is 1 there), activations inside the layer, pools that pad with
  zeros;
* channels-first layers through an im2col matrix, pools by the position of the row's maximum;
* a window slid over the image with weights (in, out, k, k), a ReLU inside, pools that give the
  gradient to every tie, gradients averaged over the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
from tests.engine.compare import assert_close
from tests.engine.values import numbers

Array = np.ndarray
Pads = tuple[int, int, int, int]


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


# name: (config, value, derivative)
ACTIVATIONS: dict[str, tuple[Any, Callable[[Array], Array], Callable[[Array], Array]]] = {
    "affine": (
        {"name": "affine", "slope": 0.5, "intercept": 2},
        lambda z: 0.5 * z + 2,
        lambda z: np.full(z.shape, 0.5),
    ),
    "relu": ("relu", lambda z: np.clip(z, 0, None), lambda z: (z > 0).astype(float)),
    "leaky": (
        {"name": "leaky_relu", "alpha": 0.3},
        lambda z: np.where(z < 0, 0.3 * z, z),
        lambda z: np.where(z > 0, 1, 0.3),
    ),
    "tanh": ("tanh", np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "sigmoid": ("sigmoid", sigmoid, lambda z: sigmoid(z) * (1 - sigmoid(z))),
    "elu": (
        "elu",
        lambda z: np.where(z > 0, z, np.exp(np.minimum(z, 0)) - 1),
        lambda z: np.where(z > 0, 1, np.exp(np.minimum(z, 0))),
    ),
    "softplus": ("softplus", lambda z: np.log(np.exp(z) + 1), sigmoid),
    "hard_sigmoid": (
        "hard_sigmoid",
        lambda z: np.clip(0.2 * z + 0.5, 0, 1),
        lambda z: np.where((z >= -2.5) & (z <= 2.5), 0.2, 0),
    ),
    "exponential": ("exponential", np.exp, np.exp),
}


def spread(w: Array, zeros: int) -> Array:
    """Put rows and columns of zeros between the taps of (rows, columns, in, out)."""
    rows, columns = ((n - 1) * (zeros + 1) + 1 for n in w.shape[:2])
    wide = np.zeros((rows, columns, *w.shape[2:]))
    wide[:: zeros + 1, :: zeros + 1] = w
    return wide


def last_conv(
    x: Array, w: Array, b: Array, stride: int, pads: Pads, zeros: int, dz: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """z and, from its gradient, those of x, w and b; every window of every image in turn."""
    wide = spread(w, zeros)
    top, bottom, left, right = pads
    padded = np.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)])
    rows, columns = wide.shape[:2]
    height = (padded.shape[1] - rows) // stride + 1
    width = (padded.shape[2] - columns) // stride + 1
    z = np.zeros((len(x), height, width, w.shape[3]))
    dpadded, dwide = np.zeros(padded.shape), np.zeros(wide.shape)
    for n in range(len(x)):
        for i in range(height):
            for j in range(width):
                place = (
                    n,
                    slice(i * stride, i * stride + rows),
                    slice(j * stride, j * stride + columns),
                )
                z[n, i, j] = np.tensordot(padded[place], wide, 3) + b
                if dz is not None:
                    dpadded[place] += wide @ dz[n, i, j]
                    dwide += padded[place][..., None] * dz[n, i, j]
    dx = dpadded[:, top : top + x.shape[1], left : left + x.shape[2]]
    db = np.zeros(b.shape) if dz is None else dz.sum((0, 1, 2))
    return z, dx, dwide[:: zeros + 1, :: zeros + 1], db


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("stride", "pads", "zeros"), [(1, (0, 0, 0, 0), 0), (2, (1, 2, 0, 1), 1), (1, (2, 2, 2, 2), 2)]
)
def test_channels_last_conv(activation: str, stride: int, pads: Pads, zeros: int) -> None:
    config, value, derivative = ACTIVATIONS[activation]
    x, w, b = numbers(1, (2, 7, 6, 3)), numbers(2, (3, 2, 3, 4)) / 4, numbers(3, (4,)) + 0.01
    z = last_conv(x, w, b, stride, pads, zeros)[0]
    dy = numbers(4, z.shape)
    _, dx, dw, db = last_conv(x, w, b, stride, pads, zeros, dy * derivative(z))
    config = {
        "layout": "NHWC",
        "stride": stride,
        "padding": [list(pads[:2]), list(pads[2:])],
        "dilation": zeros + 1,
        "activation": config,
    }
    got = engine.backward(
        "conv", config, ["y", "dx", "dweight", "dbias"], x=x, weight=w, bias=b, dy=dy
    )
    assert_close(got, {"y": value(z), "dx": dx, "dweight": dw, "dbias": db})


@pytest.mark.parametrize(
    ("stride", "padding", "zeros"), [(1, "causal", 1), (2, 1, 0), (1, "same", 0)]
)
def test_channels_last_signals(stride: int, padding: Any, zeros: int) -> None:
    """A signal is an image of one row."""
    x, w, b = numbers(5, (2, 9, 3)), numbers(6, (3, 3, 2)), numbers(7, (2,))
    reach = 2 * (zeros + 1)
    left, right = {"causal": (reach, 0), "same": (reach // 2, reach // 2), 1: (1, 1)}[padding]
    pads = (0, 0, left, right)
    z = last_conv(x[:, None], w[None], b, stride, pads, zeros)[0]
    dy = numbers(8, z.shape)
    _, dx, dw, db = last_conv(x[:, None], w[None], b, stride, pads, zeros, dy)
    config = {"layout": "NWC", "stride": stride, "padding": padding, "dilation": zeros + 1}
    got = engine.backward(
        "conv", config, ["y", "dx", "dweight", "dbias"], x=x, weight=w, bias=b, dy=dy[:, 0]
    )
    assert_close(got, {"y": z[:, 0], "dx": dx[:, 0], "dweight": dw[0], "dbias": db})


@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (2, 1), (3, 2)])
def test_channels_last_deconv(stride: int, pad: int) -> None:
    """A convolution of the image with zeros between its pixels, by the kernel turned half round."""
    x, w, b = numbers(9, (2, 4, 3, 2)), numbers(10, (3, 4, 2, 3)), numbers(11, (3,))
    rows, columns = ((n - 1) * stride + 1 for n in x.shape[1:3])
    apart = np.zeros((2, rows, columns, 2))
    apart[:, ::stride, ::stride] = x
    turned = w[::-1, ::-1]
    pads = (2 - pad, 2 - pad, 3 - pad, 3 - pad)
    z = last_conv(apart, turned, b, 1, pads, 0)[0]
    dy = numbers(12, z.shape)
    _, dx, dw, db = last_conv(apart, turned, b, 1, pads, 0, dy)
    config = {"layout": "NHWC", "stride": stride, "padding": pad}
    got = engine.backward(
        "deconv", config, ["y", "dx", "dweight", "dbias"], x=x, weight=w, bias=b, dy=dy
    )
    want = {"y": z, "dx": dx[:, ::stride, ::stride], "dweight": dw[::-1, ::-1], "dbias": db}
    assert_close(got, want)


@pytest.mark.parametrize("mode", ["max", "average"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pad"), [((2, 2), 2, 0), ((3, 2), 1, 1), ((3, 3), 2, 2)]
)
def test_channels_last_pools(mode: str, kernel: tuple[int, int], stride: int, pad: int) -> None:
    """Zeros around the image count in the average and compete for the maximum."""
    x = numbers(13, (2, 6, 5, 3), "ties")
    padded = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
    height, width = ((n - k) // stride + 1 for n, k in zip(padded.shape[1:3], kernel, strict=True))
    y = np.zeros((2, height, width, 3))
    dy = numbers(14, y.shape)
    dpadded = np.zeros(padded.shape)
    for n, i, j, c in np.ndindex(y.shape):
        place = (
            n,
            slice(i * stride, i * stride + kernel[0]),
            slice(j * stride, j * stride + kernel[1]),
            c,
        )
        if mode == "max":
            y[n, i, j, c] = padded[place].max()
            row, column = np.argwhere(padded[place] == y[n, i, j, c])[0]
            dpadded[n, i * stride + row, j * stride + column, c] += dy[n, i, j, c]
        else:
            y[n, i, j, c] = padded[place].mean()
            dpadded[place] += dy[n, i, j, c] / np.prod(kernel)
    config: dict[str, Any] = {
        "layout": "NHWC",
        "kernel": list(kernel),
        "stride": stride,
        "padding": pad,
    }
    operation = "avg_pool"
    if mode == "max":
        operation, config["pad_value"] = "max_pool", "zero"
    got = engine.backward(operation, config, ["y", "dx"], x=x, dy=dy)
    dx = dpadded[:, pad : pad + 6, pad : pad + 5]
    assert_close(got, {"y": y, "dx": dx})


def im2col(x: Array, kernel: int, stride: int, pad: int) -> tuple[Array, int, int]:
    """One row per output position: (N * height * width, C * kernel * kernel)."""
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    height, width = ((n - kernel) // stride + 1 for n in padded.shape[2:])
    columns = np.zeros((len(x), x.shape[1], kernel, kernel, height, width))
    for i in range(kernel):
        for j in range(kernel):
            columns[:, :, i, j] = padded[
                :, :, i : i + stride * height : stride, j : j + stride * width : stride
            ]
    return columns.transpose(0, 4, 5, 1, 2, 3).reshape(len(x) * height * width, -1), height, width


def col2im(columns: Array, shape: tuple[int, ...], kernel: int, stride: int, pad: int) -> Array:
    n, c, rows, cols = shape
    height, width = ((size + 2 * pad - kernel) // stride + 1 for size in (rows, cols))
    parts = columns.reshape(n, height, width, c, kernel, kernel).transpose(0, 3, 4, 5, 1, 2)
    image = np.zeros((n, c, rows + 2 * pad + stride, cols + 2 * pad + stride))
    for i in range(kernel):
        for j in range(kernel):
            image[:, :, i : i + stride * height : stride, j : j + stride * width : stride] += parts[
                :, :, i, j
            ]
    return image[:, :, pad : pad + rows, pad : pad + cols]


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 1, 0), (3, 2, 1), (5, 1, 2), (2, 2, 0)])
def test_im2col_conv(kernel: int, stride: int, pad: int) -> None:
    x, w, b = numbers(15, (3, 2, 7, 7)), numbers(16, (4, 2, kernel, kernel)), numbers(17, (4,))
    columns, height, width = im2col(x, kernel, stride, pad)
    matrix = w.reshape(4, -1).T
    y = (columns @ matrix + b).reshape(3, height, width, 4).transpose(0, 3, 1, 2)
    dy = numbers(18, y.shape)
    rows = dy.transpose(0, 2, 3, 1).reshape(-1, 4)
    want = {
        "y": y,
        "dx": col2im(rows @ matrix.T, x.shape, kernel, stride, pad),
        "dweight": (columns.T @ rows).T.reshape(w.shape),
        "dbias": rows.sum(0),
    }
    config = {"stride": stride, "padding": pad}
    wants = ["y", "dx", "dweight", "dbias"]
    assert_close(engine.backward("conv", config, wants, x=x, weight=w, bias=b, dy=dy), want)


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 1, 2)])
def test_im2col_pool(kernel: int, stride: int, pad: int) -> None:
    x = numbers(19, (2, 3, 6, 6), "ties")
    columns, height, width = im2col(x, kernel, stride, pad)
    windows = columns.reshape(-1, kernel * kernel)
    y = windows.max(1).reshape(2, height, width, 3).transpose(0, 3, 1, 2)
    dy = numbers(20, y.shape)
    spots = np.zeros(windows.shape)
    spots[np.arange(len(spots)), windows.argmax(1)] = dy.transpose(0, 2, 3, 1).reshape(-1)
    dx = col2im(spots.reshape(columns.shape), x.shape, kernel, stride, pad)
    config = {"kernel": kernel, "stride": stride, "padding": pad, "pad_value": "zero"}
    assert_close(engine.backward("max_pool", config, ["y", "dx"], x=x, dy=dy), {"y": y, "dx": dx})


def test_sliding_window_with_weights_in_out() -> None:
    """(in, out, k, k) weights, a fused ReLU, and gradients averaged over the samples."""
    x, w, b = numbers(21, (3, 2, 6, 6)), numbers(22, (2, 4, 3, 3)), numbers(23, (4,))
    z = np.zeros((3, 4, 4, 4))
    for n, o, i, j in np.ndindex(z.shape):
        z[n, o, i, j] = (x[n, :, i : i + 3, j : j + 3] * w[:, o]).sum() + b[o]
    dy = numbers(24, z.shape)
    dz = dy * (z > 0)
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    for n, o, i, j in np.ndindex(z.shape):
        dx[n, :, i : i + 3, j : j + 3] += dz[n, o, i, j] * w[:, o]
        dw[:, o] += dz[n, o, i, j] * x[n, :, i : i + 3, j : j + 3]
    config = {"weight_layout": "IOHW", "activation": "relu", "grad_reduction": "mean"}
    got = engine.backward(
        "conv", config, ["y", "dx", "dweight", "dbias"], x=x, weight=w, bias=b, dy=dy
    )
    want = {"y": np.maximum(z, 0), "dx": dx, "dweight": dw / 3, "dbias": dz.sum((0, 2, 3)) / 3}
    assert_close(got, want)


@pytest.mark.parametrize("stride", [1, 2])
def test_every_tie_gets_the_gradient(stride: int) -> None:
    x = numbers(25, (2, 3, 6, 6), "ties")
    side = (6 - 2) // stride + 1
    y = np.zeros((2, 3, side, side))
    dy = numbers(26, y.shape)
    dx = np.zeros(x.shape)
    for n, c, i, j in np.ndindex(y.shape):
        place = (n, c, slice(i * stride, i * stride + 2), slice(j * stride, j * stride + 2))
        y[n, c, i, j] = x[place].max()
        dx[place] += (x[place] == y[n, c, i, j]) * dy[n, c, i, j]
    config = {"kernel": 2, "stride": stride, "ties": "all"}
    assert_close(engine.backward("max_pool", config, ["y", "dx"], x=x, dy=dy), {"y": y, "dx": dx})
