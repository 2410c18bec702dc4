"""What is given to windows, spread over their inputs. That it is the adjoint of sums is in test_windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.geometry import Adaptive, Axis
from engine.kernels.patches import within
from engine.kernels.pools.pooling import Pooling
from engine.kernels.pools.spreading import REPEATED_IN_ROW, RUN, apart, tile_sum_adjoint
from tests.engine.kernels.winograd.test_correlating import numbers


@pytest.mark.parametrize("channels", [1, 3, RUN])
@pytest.mark.parametrize("layout", [None, "last"])
@pytest.mark.parametrize(
    "kernel", [[2], [9], [2, 2], [3, REPEATED_IN_ROW], [8, 1], [1, 2], [2, 3, 2], [6, 8]]
)
def test_the_inputs_of_windows_side_by_side_get_a_share_each(
    kernel: list[int], layout: str | None, channels: int
) -> None:
    outputs = (3, 4, 2)[: len(kernel)] if kernel[0] != 6 else (1, 1)
    sizes = [out * size for out, size in zip(outputs, kernel, strict=True)]
    x, dy = np.zeros((2, channels, *sizes)), numbers(3, 2, channels, *outputs)
    expected = dy / np.prod(kernel)
    for axis, size in enumerate(kernel):
        expected = expected.repeat(size, 2 + axis)
    config: dict[str, Any] = {"kernel": kernel}
    if layout:
        config["layout"] = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(kernel)]
        x, dy, expected = (np.moveaxis(a, 1, -1) for a in (x, dy, expected))
    dx = engine.backward("avg_pool", config, ["dx"], x=x, dy=dy)["dx"]
    np.testing.assert_array_equal(dx, expected)


def test_windows_further_apart_than_they_reach_share_no_input() -> None:
    assert apart(Axis(9, 2, 2, 1, 0, 0, 4))
    assert apart(Axis(9, 2, 3, 2, 0, 0, 3))
    assert not apart(Axis(9, 2, 2, 2, 0, 0, 4))
    assert not apart(Adaptive(9, 2))


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize(
    "axes",
    [
        (Axis(9, 2, 2, 1, 0, 0, 4), Axis(11, 3, 3, 1, 1, 0, 4)),
        (Axis(8, 2, 2, 1, 0, 0, 4), Axis(70, 26, 26, 1, 5, 0, 2)),
        (Axis(11, 2, 4, 2, 1, 1, 3), Axis(9, 1, 2, 1, 0, 0, 5)),
    ],
    ids=["some left", "long", "gaps"],
)
def test_what_windows_share_no_input_of_is_written_over(axes: tuple[Axis, ...], last: bool) -> None:
    """Whole or tile by tile, whatever was there before."""
    p = Pooling(axes, 3, last)
    g = numbers(5, 2, 3, *p.positions)
    expected = np.zeros((2, 3, *p.inputs))
    for place in np.ndindex(*p.positions):
        for tap in np.ndindex(*(axis.kernel for axis in axes)):
            at = [axis.input_of(t, o) for axis, t, o in zip(axes, tap, place, strict=True)]
            if all(0 <= i < axis.size for i, axis in zip(at, axes, strict=True)):
                expected[within(at)] = g[within(place)]
    for cuts in (1, 2):
        dx = np.full((2, *p.inputs, 3) if last else (2, 3, *p.inputs), np.nan)
        dx = np.moveaxis(dx, -1, 1) if last else dx
        (rows, columns), half = p.positions, p.positions[1] // 2
        spans = [(0, columns)] if cuts == 1 else [(0, half), (half, columns)]
        for span in spans:
            tile = ((0, rows), span)
            tile_sum_adjoint(p, g[..., slice(*span)], tile, dx)
        np.testing.assert_array_equal(dx, expected)
