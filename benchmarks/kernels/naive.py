"""The simplest whole-batch im2col in NumPy: what one writes first, and what has to be beaten.

Columns (N, C, K, P) hold, for each of P output positions, the K taps of its window. All of them are
made at once, and a convolution is one stacked product.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from benchmarks.kernels.cases import Case, Tensors

Array = NDArray[Any]


def forward(case: Case, tensors: Tensors) -> Tensors:
    """y, in the layout of the case."""
    given = {name: case.canonical(name, array) for name, array in tensors.items()}
    if case.operation == "conv":
        y = _correlate(case, given["x"], given["weight"])
    elif case.operation == "conv_transpose":
        y = _correlate_adjoint(case, given["x"], given["weight"])
    else:
        columns = _columns(case, given["x"], -np.inf if case.operation == "max_pool" else 0)
        y = columns.max(2) if case.operation == "max_pool" else columns.mean(2)
    y = y.reshape(case.shapes()["dy"])
    if case.bias:
        y = y + given["bias"].reshape(-1, *(1,) * len(case.size))
    return {"y": case.arranged("y", y)}


def backward(case: Case, tensors: Tensors) -> Tensors:
    """dx, dweight and dbias, in the layout of the case."""
    given = {name: case.canonical(name, array) for name, array in tensors.items()}
    x, dy = given["x"], given["dy"]
    found = {}
    if case.operation == "conv":
        found["dx"] = _correlate_adjoint(case, dy, given["weight"])
        found["dweight"] = _products(case, dy, x)
    elif case.operation == "conv_transpose":
        found["dx"] = _correlate(case, dy, given["weight"]).reshape(x.shape)
        found["dweight"] = _products(case, x, dy)
    else:
        found["dx"] = _pool_backward(case, x, dy)
    if case.is_convolution:
        found["dweight"] = found["dweight"].reshape(given["weight"].shape)
    if case.bias:
        found["dbias"] = dy.sum(axis=(0, *range(2, dy.ndim)))
    return {name: case.arranged(name, array) for name, array in found.items()}


def _correlate(case: Case, a: Array, weight: Array) -> Array:
    """(N, G, rows, P) from the wide side; weight (G, rows, channels · K)."""
    return _matrix(case, weight) @ _by_group(case, _columns(case, a))


def _correlate_adjoint(case: Case, b: Array, weight: Array) -> Array:
    """The wide side, (N, C, *S), from (N, C', *P)."""
    return _image(case, _matrix(case, weight).swapaxes(1, 2) @ _by_group(case, b))


def _products(case: Case, b: Array, a: Array) -> Array:
    """(G, rows, channels · K): every value of b times the window of a that it belongs to."""
    columns = _by_group(case, _columns(case, a))
    return (_by_group(case, b) @ columns.swapaxes(2, 3)).sum(0)


def _matrix(case: Case, weight: Array) -> Array:
    rows = weight.shape[0] // case.groups
    return weight.reshape(case.groups, rows, prod(weight.shape[1:]))


def _by_group(case: Case, a: Array) -> Array:
    """(N, G, rows, P) from (N, C, K, P) or (N, C, *P)."""
    narrow = case.size if case.operation == "conv_transpose" else case.positions
    return a.reshape(a.shape[0], case.groups, -1, prod(narrow))


def _columns(case: Case, a: Array, fill: float = 0) -> Array:
    """(N, C, K, P) from (N, C, *S)."""
    dims = len(case.taps)
    pads = ((0, 0), (0, 0), *((case.padding, case.padding),) * dims)
    padded = np.pad(a, pads, constant_values=fill)
    windows = sliding_window_view(padded, case.taps, axis=tuple(range(2, 2 + dims)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, case.stride),) * dims)]
    taps_first = windows.transpose(0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims))
    return taps_first.reshape(*a.shape[:2], prod(case.taps), -1)


def _image(case: Case, columns: Array) -> Array:
    """The adjoint of `_columns`: every column added to where its taps came from."""
    wide, narrow = case.size, case.positions
    channels = case.channels
    if case.operation == "conv_transpose":
        wide, narrow, channels = narrow, wide, case.outputs
    padded = np.zeros(
        (columns.shape[0], channels, *(s + 2 * case.padding for s in wide)), columns.dtype
    )
    by_tap = columns.reshape(columns.shape[0], channels, *case.taps, *narrow)
    for tap in np.ndindex(*case.taps):
        place = [
            slice(t, t + case.stride * p, case.stride) for t, p in zip(tap, narrow, strict=True)
        ]
        padded[(slice(None), slice(None), *place)] += by_tap[(slice(None), slice(None), *tap)]
    inside = (slice(case.padding, case.padding + s) for s in wide)
    return padded[(slice(None), slice(None), *inside)]


def _pool_backward(case: Case, x: Array, dy: Array) -> Array:
    dy = dy.reshape(*dy.shape[:2], 1, -1)
    if case.operation == "max_pool":
        columns = _columns(case, x, -np.inf)
        spread = np.zeros_like(columns)
        np.put_along_axis(spread, columns.argmax(2, keepdims=True), dy, axis=2)
    else:
        taps = prod(case.taps)
        spread = np.repeat(dy / dy.dtype.type(taps), taps, axis=2)
    return _image(case, spread)
