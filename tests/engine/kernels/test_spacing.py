"""Scratch with planes apart: where they lie, and that tiles over maps of such sizes are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.arena import LINE
from engine.kernels.spacing import READ, WRITTEN, spaced
from tests.engine.kernels.winograd.test_correlating import BY_NAME, numbers

DIRECT = {"algorithm": "direct"}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shared", [READ, WRITTEN])
@pytest.mark.parametrize(
    ("shape", "planes"), [((6, 1, 16, 16), 1), ((6, 2, 32, 32), 1), ((2, 3, 16, 32), 2)]
)
def test_planes_that_would_share_lines_are_an_odd_number_of_lines_apart(
    shape: tuple[int, ...], planes: int, shared: int, dtype: str
) -> None:
    found = spaced(shape, np.dtype(dtype), shared, np.empty, planes)
    plane = found[(0,) * planes]
    assert found.shape == shape
    assert plane.flags.c_contiguous
    between = found.strides[planes - 1]
    if plane.nbytes % shared:
        assert found.flags.c_contiguous
    else:
        assert between % LINE == 0
        assert between // LINE % 2 == 1
        assert plane.nbytes < between <= plane.nbytes * 9 / 8
        assert planes == 1 or found.strides[0] == shape[1] * between


@pytest.mark.parametrize("shape", [(6, 1, 28, 28), (6, 1, 0, 16), (0, 1, 16, 16), (6, 1, 5, 7)])
def test_other_planes_lie_close_together(shape: tuple[int, ...]) -> None:
    found = spaced(shape, np.dtype("f4"), WRITTEN, np.empty)
    assert found.shape == shape
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    ("sizes", "size"), [((8, 32, 32), (32, 32)), ((4, 40, 70), (64, 128)), ((2, 33, 64), (16, 256))]
)
def test_values_in_float64(sizes: tuple[int, int, int], size: tuple[int, int]) -> None:
    samples, channels, outputs = sizes
    x, w = numbers(1, samples, channels, *size), numbers(2, outputs, channels, 3, 3)
    tensors = {"x": x, "weight": w, "dy": numbers(3, samples, outputs, *size)}
    for wanted in ("y", "dx", "dweight"):
        got, want = (_one({"padding": 1} | by, wanted, tensors) for by in (BY_NAME, DIRECT))
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-9)


def test_a_sample_has_the_bits_that_it_has_alone() -> None:
    size = (3, 64, 64, 64)
    x, dy = (numbers(n, *size).astype("f4") for n in (1, 3))
    x[1, 5, 6, 7] = np.nan
    tensors = {"x": x, "weight": numbers(2, 64, 64, 3, 3).astype("f4"), "dy": dy}
    for wanted in ("y", "dx"):
        found = _one({"padding": 1}, wanted, tensors)
        for n in range(len(x)):
            own = {"x": x[n : n + 1], "weight": tensors["weight"], "dy": dy[n : n + 1]}
            assert found[n].tobytes() == _one({"padding": 1}, wanted, own).tobytes()


def _one(config: dict[str, Any], wanted: str, tensors: dict[str, np.ndarray]) -> np.ndarray:
    if wanted == "y":
        return engine.forward("conv", config, x=tensors["x"], weight=tensors["weight"])["y"]
    return engine.backward("conv", config, [wanted], **tensors)[wanted]
