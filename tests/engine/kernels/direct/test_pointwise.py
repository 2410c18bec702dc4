"""1×1 gradients of weights in long runs, against gathered patches: values, runs and what fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.kernels import requests
from engine.kernels.correlation import Correlation
from engine.kernels.direct import patch_sums, pointwise
from engine.kernels.requests import SHARES
from tests.engine.kernels.images import image, tensors

ROWS = (2, 0, 1, 3)


LAYERS = [(3, 5, False), (5, 3, False), (3, 5, True), (5, 3, True)]
"""Channels, outputs, and whether channels are last."""


def layer(
    channels: int = 3, outputs: int = 5, channels_last: bool = True, itemsize: int = 8
) -> Correlation:
    more = (itemsize, 2, channels, outputs, channels_last)
    return image((19, 17), (1, 1), (0, 0), (), (), *more)


def given(c: Correlation, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """x and dy, with channels last in memory if they are the layer's."""
    x, _, _, dy = tensors(c, samples)
    return (last(x), last(dy)) if c.channels_last else (x, dy)


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, (1, 2), (-2, -1))), (-2, -1), (1, 2))


def gradient(c: Correlation, x: np.ndarray, dy: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    dw = np.full((len(rows), c.groups, c.outputs, c.channels, *c.kernel), np.nan, x.dtype)
    pointwise.backward_weight(c, x, dy, rows, dw)
    return dw


@pytest.mark.parametrize("runs", [(256, 1024), (7, 20), (10_000, 10_000)])
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.parametrize("sizes", LAYERS)
def test_values(
    sizes: tuple[int, int, bool],
    runs: tuple[int, int],
    bad: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pointwise, "LEAST_RUN", runs[0])
    monkeypatch.setattr(pointwise, "MOST_RUN", runs[1])
    c = layer(*sizes)
    assert pointwise.suits(c)
    x, dy = given(c, sum(ROWS))
    if bad is not None:
        x[1, 0, 0, -1, -1] = dy[4, 1, 0, 0, 0] = bad
    want = np.empty((len(ROWS), c.groups, c.outputs, c.channels, *c.kernel))
    with np.errstate(invalid="ignore"):
        got = gradient(c, x, dy, ROWS)
        patch_sums.backward_weight(c, x, dy, ROWS, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_many_requests_are_summed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    c = layer()
    x, dy = given(c, sum(ROWS))
    want = gradient(c, x, dy, ROWS)
    monkeypatch.setattr(requests, "PART_BYTES", 1)
    assert gradient(c, x, dy, ROWS).tobytes() == want.tobytes()


@pytest.mark.parametrize("sizes", LAYERS)
def test_the_same_bits_whoever_comes_along(sizes: tuple[int, int, bool]) -> None:
    c = layer(*sizes, itemsize=4)
    x, dy = given(c, 7)
    together = gradient(c, x, dy, (2, 5))
    alone = gradient(c, x[2:], dy[2:], (5,))
    assert alone.tobytes() == together[1:].tobytes()


@pytest.mark.parametrize("size", [(16, 16), (19, 17), (56, 56), (112, 113)])
@pytest.mark.parametrize("samples", [0, 1, 3, 20])
def test_runs_cover_a_request_once(size: tuple[int, int], samples: int) -> None:
    places = size[0] * size[1]
    pieces = pointwise._pieces(image(size, (1, 1), (0, 0)), slice(2, 2 + samples))
    covered = [n * places + p for n, run in pieces for p in range(*run)]
    assert covered == list(range(2 * places, (2 + samples) * places))
    assert all(hi - lo <= pointwise.MOST_RUN for _, (lo, hi) in pieces)
    # Threads share a request where it is worth it.
    assert len(pieces) >= min(SHARES, samples * places // pointwise.LEAST_RUN // 2)


@pytest.mark.parametrize(
    "other",
    [
        replace(layer(), channels=1000, outputs=1000),
        image((12, 12), (1, 1), (0, 0), groups=1, channels=200, outputs=200),
        image((7, 7), (1, 1), (0, 0)),
        image((19, 17), (1, 1), (0, 0), stride=(2, 2)),
        image((19, 17), (3, 1), (1, 1)),
    ],
    ids=["many weights", "many for each position", "small maps", "stride", "taps"],
)
def test_others_are_left_to_others(other: Correlation) -> None:
    assert not pointwise.suits(other)
