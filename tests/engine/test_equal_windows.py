"""Pools whose windows are those of another config: neither answers nor plans tell them apart."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import engine
from engine import pool
from engine.geometry import Adaptive
from engine.kernels.pools.windows import bounds
from tests.engine.reference import pools

REFERENCE = {
    "max": (pools.adaptive_max_forward, pools.adaptive_max_backward),
    "avg": (pools.adaptive_avg_forward, pools.adaptive_avg_backward),
}

Numbers = tuple[int, ...]
Output = list[int | None]

LAYERS: list[tuple[Numbers, Output, list[int]]] = [
    ((2, 3, 14, 28), [7, 7], [2, 4]),
    ((2, 3, 14, 6), [1, 1], [14, 6]),
    ((2, 3, 5, 9), [None, 3], [1, 3]),
    ((2, 3, 90), [3], [30]),
]

SHARING: list[tuple[Numbers, Output, list[int], list[int]]] = [
    ((2, 3, 13, 16), [6, 5], [3, 4], [2, 3]),
    ((2, 17, 13, 15), [6, 5], [3, 3], [2, 3]),
    ((2, 3, 7, 5, 4), [3, None, 3], [3, 1, 2], [2, 1, 1]),
    ((2, 3, 41), [5], [9], [8]),
]
"""Adaptive windows that share one input each, their output, kernel and stride."""

PADDED: list[tuple[Numbers, Output]] = [
    ((2, 3, 14, 11), [5, 4]),
    ((2, 17, 7, 13), [4, 7]),
    ((2, 3, 3), [4]),
    ((2, 3, 8, 5, 7), [3, 2, 8]),
]
"""The same where they begin and end as if there were one input more before and behind."""


def tied(shape: tuple[int, ...]) -> np.ndarray:
    """Few numbers, so that many are equal, with NaN and infinities among them."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, shape).astype(np.float32)
    for odd in (np.nan, np.inf, -np.inf):
        x[rng.random(shape) < 0.02] = odd
    x[0, 0] = -np.inf
    return x


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(
    ("shape", "output", "kernel", "stride"),
    [*((*layer, None) for layer in LAYERS), *SHARING],
    ids=str,
)
def test_adaptive_windows_that_divide_their_inputs_are_fixed_windows(
    shape: tuple[int, ...],
    output: list[int | None],
    kernel: list[int],
    stride: list[int] | None,
    kind: str,
    last: bool,
) -> None:
    x = tied(shape)
    letters = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(kernel)]
    layout: dict[str, Any] = {"layout": letters if last else None}
    if kind == "max":
        layout["return_indices"] = True
    if last:
        x = np.moveaxis(x, 1, -1)
    answers = []
    for name, windows in (
        (f"adaptive_{kind}_pool", {"output_size": output}),
        (f"{kind}_pool", {"kernel": kernel, "stride": stride}),
    ):
        config = layout | windows
        found = engine.forward(name, config, x=x)
        dy = np.arange(1, found["y"].size + 1, dtype=np.float32).reshape(found["y"].shape)
        found |= engine.backward(name, config, x=x, dy=dy)
        answers.append({key: a.tobytes() for key, a in found.items()})
    assert answers[0] == answers[1]


@pytest.mark.parametrize(("shape", "output", "kernel"), LAYERS, ids=str)
def test_plans_of_adaptive_pools_tell_of_their_windows(
    shape: tuple[int, ...], output: list[int | None], kernel: list[int]
) -> None:
    for name in ("adaptive_max_pool", "adaptive_avg_pool"):
        report = engine.plan(name, {"output_size": output}, {"x": shape}).report()
        assert report["padding"] == [[0, 0]] * len(kernel)
        assert report["receptive_field"] == kernel
        assert report["flops"]["forward"] == np.prod(shape)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize(("shape", "output"), [*(layer[:2] for layer in SHARING), *PADDED], ids=str)
def test_adaptive_windows_that_share_one_input_answer_as_the_reference(
    shape: tuple[int, ...], output: list[int | None], last: bool, kind: str
) -> None:
    x = tied(shape)
    if last:
        x = np.moveaxis(x, 1, -1)
    layout = {3: "NWC", 4: "NHWC", 5: "NDHWC"}[x.ndim] if last else None
    config = {"output_size": output, "layout": layout}
    forward, backward = REFERENCE[kind]
    for dtype in ("float32", "float64"):
        x = x.astype(dtype)
        with np.errstate(invalid="ignore"):
            want = forward(config, {"x": x})
        dy = np.arange(want["y"].size, dtype=dtype).reshape(want["y"].shape)
        want |= backward(config, {"x": x, "dy": dy})
        got = engine.forward(f"adaptive_{kind}_pool", config, x=x)
        got |= engine.backward(f"adaptive_{kind}_pool", config, x=x, dy=dy)
        for name in ("y", "dx"):
            np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_fixed_windows_are_where_adaptive_ones_are() -> None:
    found = 0
    for size, out in product(range(1, 50), range(1, 50)):
        fixed, adaptive = pool._sharing(size, out), Adaptive(size, out)
        if fixed is None:
            continue
        found += 1
        ends = [adaptive.window(o) for o in range(out)]
        starts, stops = bounds(fixed, 0, out)
        assert list(zip(starts.tolist(), stops.tolist(), strict=True)) == ends
        assert fixed.extent == adaptive.extent
    assert found > 200


@pytest.mark.parametrize(("shape", "output"), PADDED, ids=str)
def test_padding_that_only_we_see_is_not_told(shape: tuple[int, ...], output: list[int]) -> None:
    for name in ("adaptive_max_pool", "adaptive_avg_pool"):
        report = engine.plan(name, {"output_size": output}, {"x": shape}).report()
        assert report["padding"] == [[0, 0]] * len(output)


def test_padding_that_only_we_see_is_no_work() -> None:
    for sizes, out in (([2, 2, 2], [3, 3, 3]), ([9], [5]), ([13, 14], [7, 7]), ([13], [6])):
        report = engine.plan(
            "adaptive_max_pool", {"output_size": out}, {"x": (1, 2, *sizes)}
        ).report()
        members = [Adaptive(*pair) for pair in zip(sizes, out, strict=True)]
        counts = [sum(hi - lo for lo, hi in map(a.window, range(a.out))) for a in members]
        assert report["flops"]["forward"] == 2 * prod(counts)


def test_an_axis_that_does_not_divide_has_no_padding_either() -> None:
    report = engine.plan(
        "adaptive_avg_pool", {"output_size": [7, 6]}, {"x": (1, 1, 14, 13)}
    ).report()
    assert report["padding"] == [[0, 0], [0, 0]]


@pytest.mark.parametrize("operation", ["max_pool", "avg_pool", "lp_pool"])
@pytest.mark.parametrize(
    "config",
    [
        {"kernel": [4, 6]},
        {"kernel": [3, 5]},
        {"kernel": [6, 7], "padding": [[1, 1], [0, 1]]},
        {"kernel": [2, 3], "dilation": [3, 2]},
    ],
    ids=str,
)
def test_the_step_from_the_only_window_is_nowhere_seen(
    operation: str, config: dict[str, Any]
) -> None:
    x = tied((2, 3, 4, 6))
    answers = []
    for stride in (None, 3, 10**9):
        own = config | {"stride": stride}
        found = engine.forward(operation, own, x=x)
        assert found["y"].shape == (2, 3, 1, 1)
        found |= engine.backward(operation, own, x=x, dy=np.full((2, 3, 1, 1), 0.3, np.float32))
        answers.append({key: a.tobytes() for key, a in found.items()})
    assert answers[0] == answers[1] == answers[2]
