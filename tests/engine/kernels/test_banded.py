"""Banded products against gathered patches: values, edges, blocks and bad numbers."""

from __future__ import annotations

import numpy as np
import pytest

from engine.geometry import Axis, strided_out
from engine.kernels import banded, direct
from engine.kernels.correlation import Correlation

SIZES = [((9, 9), (5, 5), 2), ((4, 30), (4, 4), 0), ((21, 17), (7, 3), 3), ((5, 3), (4, 7), 6)]


def layer(
    size: tuple[int, ...], kernel: tuple[int, ...], padding: int, itemsize: int = 8, groups: int = 9
) -> Correlation:
    axes = tuple(
        Axis(n, k, 1, 1, padding, padding + 1, strided_out(n, k, 1, padding, padding + 1))
        for n, k in zip(size, kernel, strict=True)
    )
    return Correlation(axes, groups, 1, 1, "zeros", itemsize)


def tensors(c: Correlation, samples: int = 3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    dtype = f"f{c.itemsize}"
    x = rng.standard_normal((samples, c.groups, 1, *(a.size for a in c.axes))).astype(dtype)
    w = rng.standard_normal((c.groups, 1, c.taps)).astype(dtype)
    dy = rng.standard_normal((samples, c.groups, 1, *c.positions)).astype(dtype)
    return x, w, rng.standard_normal((c.groups, 1)).astype(dtype), dy


@pytest.mark.parametrize(("size", "kernel", "padding"), SIZES)
@pytest.mark.parametrize("part", [2 << 20, 1 << 12])
def test_values(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    padding: int,
    part: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(banded, "PART_BYTES", part)
    banded.banding.cache_clear()
    c = layer(size, kernel, padding)
    assert banded.suits(c)
    x, w, bias, dy = tensors(c)
    got, want = np.full((2, *dy.shape), np.nan)
    banded.forward(c, x, w, bias, got)
    direct.forward(c, x, w, bias, want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    got, want = np.full((2, 3, c.groups, 1, 1, *c.kernel), np.nan)
    for kernel_, out in ((banded.backward_weight, got), (direct.backward_weight, want)):
        kernel_(c, x, dy, (2, 0, 1), out)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    banded.banding.cache_clear()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_numbers_touch_only_what_reads_them_and_change_no_other_bit(bad: float) -> None:
    c = layer((20, 20), (5, 5), 2, itemsize=4)
    x, w, _, dy = tensors(c)
    clean, got, want = np.zeros((3, *dy.shape), np.float32)
    banded.forward(c, x, w, None, clean)
    x[1, 4, 0, 7, 9] = bad
    with np.errstate(invalid="ignore"):
        banded.forward(c, x, w, None, got)
        direct.forward(c, x, w, None, want)
    finite = np.isfinite(want)
    assert not finite.all()
    np.testing.assert_array_equal(got[~finite], want[~finite])
    assert got[finite].tobytes() == clean[finite].tobytes()


def test_the_same_bits_whoever_comes_along() -> None:
    c = layer((30, 30), (7, 7), 3, itemsize=4)
    x, w, _, dy = tensors(c, 4)
    whole, alone = np.zeros((2, *dy.shape), np.float32)
    banded.forward(c, x, w, None, whole)
    for n in range(4):
        banded.forward(c, x[n : n + 1], w, None, alone[n : n + 1])
    assert whole.tobytes() == alone.tobytes()
    together = np.zeros((2, c.groups, 1, 1, *c.kernel), np.float32)
    banded.backward_weight(c, x, dy, (1, 3), together)
    single = np.zeros_like(together[:1])
    banded.backward_weight(c, x[1:], dy[1:], (3,), single)
    assert single.tobytes() == together[1:].tobytes()
