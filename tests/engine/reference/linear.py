"""conv and conv_transpose, from their defining sums.

Both are given by links (output cell, input cell, tap): which product goes into which sum. Forward
adds the products up; each gradient walks the same links and adds what the chain rule says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.reference import activations
from tests.engine.reference.geometry import (
    Index,
    Pairs,
    conv_padding,
    extent,
    from_first,
    halves,
    per_axis,
    positions,
    rearrange,
    source,
    to_first,
    weight_axes,
    window_count,
)

Arrays = dict[str, np.ndarray]
Links = list[tuple[Index, Index, Index]]


class Problem:
    """One call in canonical layout, x (N, C, space), w (O, I, taps) or (I, O, taps), with links."""

    def __init__(self, config: dict[str, Any], tensors: Arrays, transposed: bool) -> None:
        self.config = config
        self.transposed = transposed
        self.x = to_first(tensors["x"], config)
        self.rank = self.x.ndim - 2
        self.given, self.canonical = weight_axes(config, self.rank, "IO" if transposed else "OI")
        self.w = rearrange(tensors["weight"], self.given, self.canonical)
        self.size: Index = self.x.shape[2:]
        self.taps: Index = self.w.shape[2:]
        self.groups = config.get("groups", 1)
        self.stride = per_axis(config.get("stride", 1), self.rank)
        self.dilation = per_axis(config.get("dilation", 1), self.rank)
        self.links, self.out = self.transpose_links() if transposed else self.conv_links()
        self.channels = self.w.shape[1] * self.groups if transposed else self.w.shape[0]
        self.bias = tensors.get("bias", np.zeros(self.channels))

    def weight_tap(self, r: Index) -> Index:
        """A flipped kernel is read from its far end."""
        if not self.config.get("flip_kernel", False):
            return r
        return tuple(k - 1 - i for k, i in zip(self.taps, r, strict=True))

    def conv_links(self) -> tuple[Links, Index]:
        """y[p] takes x[p * stride + r * dilation - low] * w[r]."""
        padding = self.config.get("padding", 0)
        pairs = conv_padding(padding, self.size, self.taps, self.stride, self.dilation)
        mode = self.config.get("padding_mode", "zeros")
        out = tuple(
            window_count(n, pair, extent(k, d), s, False)
            for n, pair, k, s, d in zip(
                self.size, pairs, self.taps, self.stride, self.dilation, strict=True
            )
        )
        links: Links = []
        for p in positions(out):
            for r in positions(self.taps):
                cells = [
                    source(p[a] * self.stride[a] + r[a] * self.dilation[a], n, pairs[a][0], mode)
                    for a, n in enumerate(self.size)
                ]
                inside = tuple(cell for cell in cells if cell is not None)
                if len(inside) == len(cells):
                    links.append((p, inside, self.weight_tap(r)))
        return links, out

    def transpose_links(self) -> tuple[Links, Index]:
        """x[q] * w[r] goes to y[q * stride + r * dilation - low]."""
        pairs, out = self.transpose_geometry()
        links = []
        for q in positions(self.size):
            for r in positions(self.taps):
                p = tuple(
                    q[a] * self.stride[a] + r[a] * self.dilation[a] - pairs[a][0]
                    for a in range(self.rank)
                )
                if all(0 <= i < n for i, n in zip(p, out, strict=True)):
                    links.append((p, q, self.weight_tap(r)))
        return links, out

    def transpose_geometry(self) -> tuple[Pairs, Index]:
        padding = self.config.get("padding", 0)
        extra = per_axis(self.config.get("output_padding", 0), self.rank)
        asked = self.config.get("output_size")
        pairs, out = [], []
        for a, (n, k, s, d) in enumerate(
            zip(self.size, self.taps, self.stride, self.dilation, strict=True)
        ):
            whole = (n - 1) * s + extent(k, d)
            if padding in ("same", "same_lower"):
                pairs.append(halves(max(whole + extra[a] - n * s, 0), padding))
                out.append(n * s)
                continue
            pair = conv_padding(padding, self.size, self.taps, self.stride, self.dilation)[a]
            pairs.append(pair)
            out.append(whole - sum(pair) + extra[a])
        if asked is not None:
            out = per_axis(asked, self.rank)
        return pairs, tuple(out)

    def channel_pairs(self) -> list[tuple[int, int, int, int]]:
        """(input channel, output channel, and the two indices of their weight)."""
        inputs = self.x.shape[1] // self.groups
        outputs = self.channels // self.groups
        pairs = []
        for g in range(self.groups):
            for i in range(inputs):
                for o in range(outputs):
                    c, f = g * inputs + i, g * outputs + o
                    pairs.append((c, f, c, o) if self.transposed else (c, f, f, i))
        return pairs

    def linear(self) -> np.ndarray:
        """The result before the activation."""
        y = np.zeros((self.x.shape[0], self.channels, *self.out))
        for n in range(self.x.shape[0]):
            for c, f, first, second in self.channel_pairs():
                for p, q, r in self.links:
                    y[(n, f, *p)] += self.x[(n, c, *q)] * self.w[(first, second, *r)]
            for f in range(self.channels):
                y[n, f] += self.bias[f]
        return y

    def forward(self) -> Arrays:
        y = activations.apply(self.config.get("activation"), self.linear())[0]
        return {"y": from_first(y, self.config)}

    def backward(self, dy: np.ndarray) -> Arrays:
        dy = to_first(dy, self.config)
        if self.config.get("activation") is not None:
            dy = dy * activations.apply(self.config["activation"], self.linear())[1]
        dx, dw, db = np.zeros(self.x.shape), np.zeros(self.w.shape), np.zeros(self.channels)
        for n in range(self.x.shape[0]):
            for c, f, first, second in self.channel_pairs():
                for p, q, r in self.links:
                    dx[(n, c, *q)] += dy[(n, f, *p)] * self.w[(first, second, *r)]
                    dw[(first, second, *r)] += dy[(n, f, *p)] * self.x[(n, c, *q)]
            for f in range(self.channels):
                db[f] += dy[n, f].sum()
        if self.config.get("grad_reduction", "sum") == "mean" and len(dy):
            dw, db = dw / len(dy), db / len(dy)
        return {
            "dx": from_first(dx, self.config),
            "dweight": rearrange(dw, self.canonical, self.given),
            "dbias": db,
        }


def conv_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    return Problem(config, tensors, transposed=False).forward()


def conv_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    return Problem(config, tensors, transposed=False).backward(tensors["dy"])


def transpose_forward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    return Problem(config, tensors, transposed=True).forward()


def transpose_backward(config: dict[str, Any], tensors: Arrays) -> Arrays:
    return Problem(config, tensors, transposed=True).backward(tensors["dy"])
