"""The pools and max_unpool: every window as the list of its cells.

A cell is an index into the input's space, or None for a cell of the padding. Cells that only
`ceil_mode` reaches, beyond the padded input, are in no list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.engine.reference.geometry import (
    Index,
    conv_padding,
    extent,
    flat,
    from_first,
    per_axis,
    positions,
    to_first,
    window_count,
)

Arrays = dict[str, np.ndarray]
Window = list[Index | None]
Windows = dict[Index, Window]


def strided_windows(config: dict[str, Any], size: Index) -> tuple[Windows, Index]:
    rank = len(size)
    kernel = per_axis(config["kernel"], rank)
    given = config.get("stride")
    stride = per_axis(kernel if given is None else given, rank)
    dilation = per_axis(config.get("dilation", 1), rank)
    pairs = conv_padding(config.get("padding", 0), size, tuple(kernel), stride, dilation)
    out = tuple(
        window_count(
            size[a],
            pairs[a],
            extent(kernel[a], dilation[a]),
            stride[a],
            config.get("ceil_mode", False),
        )
        for a in range(rank)
    )
    windows: Windows = {}
    for p in positions(out):
        window: Window = []
        for r in positions(kernel):
            cell = tuple(p[a] * stride[a] + r[a] * dilation[a] - pairs[a][0] for a in range(rank))
            if any(cell[a] >= size[a] + pairs[a][1] for a in range(rank)):
                continue
            inside = all(0 <= cell[a] < size[a] for a in range(rank))
            window.append(cell if inside else None)
        windows[p] = window
    return windows, out


def adaptive_windows(config: dict[str, Any], size: Index) -> tuple[Windows, Index]:
    asked = config["output_size"]
    sizes = [asked] * len(size) if asked is None or isinstance(asked, int) else asked
    out = tuple(n if m is None else m for n, m in zip(size, sizes, strict=True))
    windows: Windows = {}
    for p in positions(out):
        axes = [
            range(math.floor(i * n / m), math.ceil((i + 1) * n / m))
            for i, n, m in zip(p, size, out, strict=True)
        ]
        start = [axis.start for axis in axes]
        windows[p] = [
            tuple(s + i for s, i in zip(start, offset, strict=True))
            for offset in positions([len(axis) for axis in axes])
        ]
    return windows, out


def planes(a: np.ndarray) -> Iterator[Index]:
    """(sample, channel) of every plane."""
    return positions(a.shape[:2])


def candidates(plane: np.ndarray, window: Window, zero: bool) -> list[tuple[Index | None, float]]:
    return [
        (cell, 0.0 if cell is None else float(plane[cell]))
        for cell in window
        if cell is not None or zero
    ]


def winners(cells: list[tuple[Index | None, float]]) -> list[tuple[Index | None, float]]:
    """All maxima in row-major order; NaN wins over every number."""
    lost = [entry for entry in cells if math.isnan(entry[1])]
    if lost or not cells:
        return lost
    top = max(value for _, value in cells)
    return [entry for entry in cells if entry[1] == top]


def _max_forward(config: dict[str, Any], tensors: Arrays, windows: Windows, out: Index) -> Arrays:
    x = to_first(tensors["x"], config)
    zero = config.get("pad_value", "lowest") == "zero"
    y = np.full((*x.shape[:2], *out), -math.inf)
    indices = np.full(y.shape, -1, np.int64)
    for n, c in planes(x):
        for p, window in windows.items():
            best = winners(candidates(x[n, c], window, zero))
            if best:
                cell, y[(n, c, *p)] = best[0]
                if cell is not None:
                    indices[(n, c, *p)] = flat(cell, x.shape[2:])
    result = {"y": from_first(y, config)}
    if config.get("return_indices", False):
        result["indices"] = from_first(indices, config)
    return result


def _max_backward(config: dict[str, Any], tensors: Arrays, windows: Windows) -> Arrays:
    x, dy = to_first(tensors["x"], config), to_first(tensors["dy"], config)
    zero = config.get("pad_value", "lowest") == "zero"
    every = config.get("ties", "first") == "all"
    dx = np.zeros(x.shape)
    for n, c in planes(x):
        for p, window in windows.items():
            best = winners(candidates(x[n, c], window, zero))
            for cell, _ in best if every else best[:1]:
                if cell is not None:
                    dx[(n, c, *cell)] += dy[(n, c, *p)]
    return {"dx": from_first(dx, config)}


def scatter(indices: np.ndarray, dy: np.ndarray, shape: Index) -> np.ndarray:
    """Add each dy to the cell its index names."""
    dx = np.zeros(shape)
    for n, c in planes(dy):
        for p in positions(dy.shape[2:]):
            index = int(indices[(n, c, *p)])
            if index >= 0:
                dx[n, c].reshape(-1)[index] += dy[(n, c, *p)]
    return dx


def max_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _max_forward(config, tensors, *strided_windows(config, size))


def max_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    if "x" not in tensors:
        indices, dy = to_first(tensors["indices"], config), to_first(tensors["dy"], config)
        shape = to_first(np.empty(config["input_shape"]), config).shape
        return {"dx": from_first(scatter(indices, dy, shape), config)}
    size = to_first(tensors["x"], config).shape[2:]
    return _max_backward(config, tensors, strided_windows(config, size)[0])


def adaptive_max_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _max_forward(config, tensors, *adaptive_windows(config, size))


def adaptive_max_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _max_backward(config, tensors, adaptive_windows(config, size)[0])


def divisor(config: dict[str, Any], window: Window) -> int:
    if config.get("divisor_override") is not None:
        return config["divisor_override"]
    if config.get("count_include_pad", True):
        return len(window)
    return sum(cell is not None for cell in window)


def _avg_forward(config: dict[str, Any], tensors: Arrays, windows: Windows, out: Index) -> Arrays:
    x = to_first(tensors["x"], config)
    y = np.zeros((*x.shape[:2], *out))
    for n, c in planes(x):
        for p, window in windows.items():
            for cell in window:
                if cell is not None:
                    y[(n, c, *p)] += x[(n, c, *cell)] / divisor(config, window)
    return {"y": from_first(y, config)}


def _avg_backward(config: dict[str, Any], tensors: Arrays, windows: Windows) -> Arrays:
    x, dy = to_first(tensors["x"], config), to_first(tensors["dy"], config)
    dx = np.zeros(x.shape)
    for n, c in planes(x):
        for p, window in windows.items():
            for cell in window:
                if cell is not None:
                    dx[(n, c, *cell)] += dy[(n, c, *p)] / divisor(config, window)
    return {"dx": from_first(dx, config)}


def avg_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _avg_forward(config, tensors, *strided_windows(config, size))


def avg_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _avg_backward(config, tensors, strided_windows(config, size)[0])


def adaptive_avg_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _avg_forward(config, tensors, *adaptive_windows(config, size))


def adaptive_avg_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    size = to_first(tensors["x"], config).shape[2:]
    return _avg_backward(config, tensors, adaptive_windows(config, size)[0])


def lp_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    x, p = to_first(tensors["x"], config), float(config.get("p", 2.0))
    windows, out = strided_windows(config, x.shape[2:])
    y = np.zeros((*x.shape[:2], *out))
    for n, c in planes(x):
        for q, window in windows.items():
            total = sum(abs(float(x[(n, c, *cell)])) ** p for cell in window if cell is not None)
            y[(n, c, *q)] = total ** (1 / p)
    return {"y": from_first(y, config)}


def lp_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    x, dy = to_first(tensors["x"], config), to_first(tensors["dy"], config)
    power = float(config.get("p", 2.0)) - 1
    y = to_first(lp_forward(config, tensors)["y"], config)
    dx = np.zeros(x.shape)
    for n, c in planes(x):
        for q, window in strided_windows(config, x.shape[2:])[0].items():
            norm = float(y[(n, c, *q)])
            for cell in window:
                place: tuple[Any, ...] = () if cell is None else (n, c, *cell)
                v = float(x[place]) if place else 0.0
                if norm and v:
                    slope = math.copysign((abs(v) / norm) ** power, v)
                    dx[place] += dy[(n, c, *q)] * slope
    return {"dx": from_first(dx, config)}


def unpool_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    x, indices = to_first(tensors["x"], config), to_first(tensors["indices"], config)
    y = np.zeros((*x.shape[:2], *per_axis(config["output_size"], x.ndim - 2)))
    for n, c in planes(x):
        for q in positions(x.shape[2:]):
            index = int(indices[(n, c, *q)])
            if index >= 0:
                y[n, c].reshape(-1)[index] = x[(n, c, *q)]
    return {"y": from_first(y, config)}


def unpool_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    indices, dy = to_first(tensors["indices"], config), to_first(tensors["dy"], config)
    dx = np.zeros(indices.shape)
    for n, c in planes(indices):
        for q in positions(indices.shape[2:]):
            index = int(indices[(n, c, *q)])
            if index >= 0:
                dx[(n, c, *q)] = dy[n, c].reshape(-1)[index]
    return {"dx": from_first(dx, config)}
