"""Gradients of weights by gathered patches: shares of a request, and who is beside it."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.direct import patch_sums
from engine.kernels.requests import SHARES
from engine.threads import computing, get_threads
from tests.engine.kernels.winograd.test_correlating import numbers

STRIDED = Correlation((Axis(112, 7, 2, 1, 3, 3, 56),) * 2, 1, 3, 32, "zeros", 4)
"""A first layer, whose samples take several pieces each."""


def gradient(x: np.ndarray, dy: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    dw = np.full((len(rows), 1, 32, 3, 7, 7), np.nan, x.dtype)
    computing(None, patch_sums.backward_weight, STRIDED, x[:, None], dy[:, None], rows, dw)
    return dw[:, 0]


@pytest.mark.parametrize("rows", [(1, 1, 1, 1, 1, 1, 1), (3, 4), (7,), (2, 0, 5)])
@pytest.mark.usefixtures("shared")
def test_a_request_s_gradient_of_few_channels_is_summed_in_shares(rows: tuple[int, ...]) -> None:
    assert patch_sums.share_count(STRIDED) == SHARES
    x, dy = numbers(1, 7, 3, 112, 112).astype("f4"), numbers(2, 7, 32, 56, 56).astype("f4")
    threads = get_threads()
    try:
        engine.set_threads(1)
        whole = gradient(x, dy, rows)
        starts = np.cumsum((0, *rows))
        for request, (start, count) in enumerate(zip(starts, rows, strict=False)):
            own = slice(start, start + count)
            alone = gradient(x[own], dy[own], (count,))[0]
            assert whole[request].tobytes() == alone.tobytes()
            exact = gradient(x[own].astype("f8"), dy[own].astype("f8"), (count,))[0]
            np.testing.assert_allclose(alone, exact, rtol=1e-4, atol=1e-3)
        for count in (2, 3):
            engine.set_threads(count)
            assert gradient(x, dy, rows).tobytes() == whole.tobytes()
    finally:
        engine.set_threads(threads)


def test_where_threads_have_channels_to_share_there_is_one_sum() -> None:
    many = Correlation((Axis(56, 3, 2, 1, 1, 1, 28),) * 2, 1, 128, 128, "zeros", 4)
    assert patch_sums.share_count(many) == 1
