"""1×1 gradients of weights with channels last, against gathered patches: values, shares and what fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.kernels import direct, pointwise
from engine.kernels.correlation import Correlation
from engine.kernels.requests import SHARES
from tests.engine.kernels.images import image, tensors

ROWS = (2, 0, 1, 3)


def layer(itemsize: int = 8, size: tuple[int, int] = (19, 17)) -> Correlation:
    return image(
        size, (1, 1), (0, 0), groups=2, channels=3, outputs=5, itemsize=itemsize, channels_last=True
    )


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, (1, 2), (-2, -1))), (-2, -1), (1, 2))


def gradient(c: Correlation, x: np.ndarray, dy: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    dw = np.full((len(rows), c.groups, c.outputs, c.channels, *c.kernel), np.nan, x.dtype)
    pointwise.backward_weight(c, x, dy, rows, dw)
    return dw


@pytest.mark.parametrize("runs", [(256, 1024), (7, 20), (10_000, 10_000)])
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
def test_values(runs: tuple[int, int], bad: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointwise, "LEAST_RUN", runs[0])
    monkeypatch.setattr(pointwise, "MOST_RUN", runs[1])
    c = layer()
    assert pointwise.suits(c)
    x, _, _, dy = (last(a) if a.ndim > 3 else a for a in tensors(c, sum(ROWS)))
    if bad is not None:
        x[1, 0, 0, -1, -1] = dy[4, 1, 0, 0, 0] = bad
    want = np.empty((len(ROWS), c.groups, c.outputs, c.channels, *c.kernel))
    with np.errstate(invalid="ignore"):
        got = gradient(c, x, dy, ROWS)
        direct.backward_weight(c, x, dy, ROWS, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_many_requests_are_summed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    c = layer()
    x, _, _, dy = (last(a) if a.ndim > 3 else a for a in tensors(c, sum(ROWS)))
    want = gradient(c, x, dy, ROWS)
    monkeypatch.setattr(pointwise, "PART_BYTES", 1)
    assert gradient(c, x, dy, ROWS).tobytes() == want.tobytes()


def test_the_same_bits_whoever_comes_along() -> None:
    c = layer(itemsize=4)
    x, _, _, dy = (last(a) if a.ndim > 3 else a for a in tensors(c, 7))
    together = gradient(c, x, dy, (2, 5))
    alone = gradient(c, last(x[2:]), last(dy[2:]), (5,))
    assert alone.tobytes() == together[1:].tobytes()


@pytest.mark.parametrize("positions", [0, 1, 255, 256, 257, 4000, 100_003])
def test_shares_cover_a_request_once(positions: int) -> None:
    shares = pointwise._shares(11, 11 + positions)
    runs = [run for share in shares for run in share]
    assert len(shares) <= SHARES
    assert [run.start for run in runs] + [11 + positions] == [11, *(run.stop for run in runs)]
    assert all(0 < run.stop - run.start <= pointwise.MOST_RUN for run in runs)


@pytest.mark.parametrize(
    "other",
    [
        replace(layer(), channels_last=False),
        replace(layer(), channels=1000, outputs=1000),
        layer(size=(7, 7)),
        image((19, 17), (1, 1), (0, 0), stride=(2, 2), channels_last=True),
    ],
    ids=["channels first", "many weights", "small maps", "stride"],
)
def test_others_are_left_to_others(other: Correlation) -> None:
    assert not pointwise.suits(other)
