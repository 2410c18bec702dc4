"""All residues in one product, against one product for each: values, strips, bad numbers, what fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.kernels import dispatch
from engine.kernels.depthwise import stuffed
from tests.engine.kernels.images import Shape, image, tensors

STRIDED: list[Shape] = [
    {"size": (30, 19), "kernel": (3, 3), "padding": (1, 1), "stride": (2, 2)},
    {"size": (31, 18), "kernel": (5, 2), "padding": (2, 0), "stride": (2, 2)},
    {"size": (40, 18), "kernel": (3, 2), "padding": (0, 0), "stride": (2, 1), "dilation": (2, 3)},
    {"size": (5, 9), "kernel": (4, 5), "padding": (3, 2), "stride": (1, 2)},
    {"size": (43, 42), "kernel": (2, 3), "padding": (1, 5), "stride": (2, 2), "dilation": (3, 1)},
    {"size": (40, 40), "kernel": (2, 2), "padding": (0, 0), "stride": (2, 2)},
]


@pytest.fixture(params=[14, 3], ids=["high strips", "low strips"])
def _strips(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stuffed, "STRIP_ROWS", request.param)
    stuffed.plan.cache_clear()
    yield
    stuffed.plan.cache_clear()


@pytest.mark.usefixtures("_strips", "as_large")
@pytest.mark.parametrize("shape", STRIDED)
@pytest.mark.parametrize("bad", [None, np.nan, -np.inf])
def test_values(shape: Shape, bad: float | None) -> None:
    c = image(**shape)
    assert stuffed.suits(c)
    x, w, _, dy = tensors(c)
    clean, got, want = np.full((3, *x.shape), np.nan)
    stuffed.backward_input(c, dy, w, clean, dispatch._by_residues)
    if bad is not None:
        dy[1, 2, 0, c.positions[0] // 2, c.positions[1] // 2] = bad
    with np.errstate(invalid="ignore"):
        stuffed.backward_input(c, dy, w, got, dispatch._by_residues)
        dispatch._by_residues(c, dy, w, want)
    assert np.isfinite(want).all() == (bad is None)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert got[[0, 2]].tobytes() == clean[[0, 2]].tobytes()


@pytest.mark.usefixtures("_strips", "as_large")
@pytest.mark.parametrize("tap", range(9))
def test_a_bad_weight_reaches_what_its_tap_reaches(tap: int) -> None:
    c = image(**STRIDED[0])
    x, w, _, dy = tensors(c)
    w[3, 0, tap] = np.inf
    got, want = np.full((2, *x.shape), np.nan)
    with np.errstate(invalid="ignore"):
        stuffed.backward_input(c, dy, w, got, dispatch._by_residues)
        dispatch._by_residues(c, dy, w, want)
    assert not np.isfinite(want[:, 3]).all()
    assert np.isfinite(want[:, 4]).all()
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "reflect"},
        {"channels_last": True},
        {"outputs": 2},
        {"axes": image((9, 9), (3, 3), (1, 1)).axes},
        {"axes": image((10, 1 << 19), (3, 3), (1, 1), (2, 2)).axes},
    ],
    ids=["padding", "channels last", "not depthwise", "stride 1", "scratch"],
)
def test_others_are_left_to_others(change: dict[str, Any]) -> None:
    c = image(**STRIDED[0])
    assert stuffed.suits(c)
    assert not stuffed.suits(replace(c, **change))
