"""Which kernel computes a correlation and its adjoints; decided by the plan's integers alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.patches import within

Array = NDArray[Any]


def correlate(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    direct.forward(c, x, w, bias, y)


def correlate_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `correlate` in x, from dy (N, G, O, *P)."""
    if c.phases is None:
        direct.backward_input(c, dy, w, dx)
        return
    unfolded = w.reshape(c.groups, c.outputs, c.channels, *c.kernel)
    for phase in c.phases:
        target = dx[within(phase.inputs)]
        if phase.correlation is None:
            target[...] = 0
            continue
        taps = unfolded[within(phase.taps)].swapaxes(1, 2)
        weights = np.ascontiguousarray(taps).reshape(c.groups, c.channels, -1)
        correlate(phase.correlation, dy, weights, None, target)


def correlate_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `correlate` in w, for each of R requests.

    `rows` says how many consecutive samples belong to each request.
    """
    direct.backward_weight(c, x, dy, rows, dw)
