"""Pools hold no more memory than their plan states, whatever the size of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.threads import get_threads
from tests.engine.memory import assert_workspace_holds, peak_beside_outputs

pytestmark = pytest.mark.usefixtures("traced")


@pytest.mark.parametrize("action", ["forward", "backward"])
@pytest.mark.parametrize(
    ("operation", "config", "x", "dtype"),
    [
        ("lp_pool", {"kernel": 2, "p": 3, "layout": "NHWC"}, (1, 120, 120, 256), "float32"),
        ("lp_pool", {"kernel": 2, "p": 1}, (1, 1, 2000, 2000), "float32"),
        ("lp_pool", {"kernel": 200, "p": 3, "layout": "NHWC"}, (1, 200, 200, 64), "float64"),
        ("lp_pool", {"kernel": [20, 6], "p": 3, "layout": "NHWC"}, (1, 20, 6, 20_000), "float32"),
        ("lp_pool", {"kernel": 1, "p": 3}, (4, 64, 64, 64), "float64"),
        (
            "adaptive_max_pool",
            {"output_size": 1, "return_indices": True, "layout": "NHWC"},
            (1, 200, 200, 64),
            "float64",
        ),
        (
            "adaptive_max_pool",
            {"output_size": 1, "return_indices": True},
            (5, 5000, 120),
            "float32",
        ),
        (
            "adaptive_max_pool",
            {"output_size": 1, "return_indices": True},
            (40, 256, 111, 1),
            "float64",
        ),
        (
            "avg_pool",
            {"kernel": [100, 20], "stride": [1, 20], "layout": "NHWC"},
            (1, 200, 40, 8),
            "float64",
        ),
        ("adaptive_max_pool", {"output_size": 608_030}, (1, 1, 121_606), "float32"),
        (
            "adaptive_max_pool",
            {"output_size": [1, 4, 5], "return_indices": True, "layout": "NDHWC"},
            (216, 7, 2, 7, 71),
            "float64",
        ),
        (
            "adaptive_max_pool",
            {"output_size": [1, 6], "return_indices": True, "layout": "NHWC"},
            (242, 2, 2, 1904),
            "float64",
        ),
        (
            "adaptive_max_pool",
            {"output_size": [3, 44], "return_indices": True},
            (1, 75_000, 1, 44),
            "float64",
        ),
        ("adaptive_avg_pool", {"output_size": [20], "layout": "NWC"}, (55, 226, 75), "float64"),
        (
            "max_pool",
            {"kernel": 80, "return_indices": True, "layout": "NHWC"},
            (1, 80, 80, 512),
            "float64",
        ),
        (
            "max_pool",
            {"kernel": 2, "stride": 1, "return_indices": True, "layout": "NWC"},
            (1, 2, 2_000_000),
            "float32",
        ),
        (
            "max_pool",
            {"kernel": 11, "stride": 1, "dilation": 19, "return_indices": True, "layout": "NHWC"},
            (1, 210, 210, 64),
            "float32",
        ),
        ("avg_pool", {"kernel": 2, "stride": 1, "layout": "NWC"}, (1, 2, 2_000_000), "float32"),
        ("avg_pool", {"kernel": 3, "stride": 1, "padding": 1}, (1, 1, 2500, 2500), "float32"),
        (
            "avg_pool",
            {"kernel": 3, "stride": 1, "padding": 1, "count_include_pad": False},
            (1, 1, 3, 2_000_000),
            "float64",
        ),
        (
            "avg_pool",
            {
                "kernel": [2, 6, 2],
                "stride": [1, 3, 1],
                "dilation": [5, 1, 2],
                "padding": [[3, 11], [5, 0], [2, 8]],
                "ceil_mode": True,
                "count_include_pad": False,
            },
            (1, 1, 1, 3, 500_000),
            "float32",
        ),
        *(
            (
                "avg_pool",
                {
                    "kernel": [8, taps],
                    "stride": [1, 10],
                    "dilation": [5, 1],
                    "padding": [[1, 41], [205, 1]],
                    "layout": "NHWC",
                },
                (1, 5, 464, 256),
                "float64",
            )
            for taps in (200, 400)  # tap by tap, and as runs
        ),
        (
            "avg_pool",
            {"kernel": [190, 20], "stride": [1, 20], "layout": "NHWC"},
            (1, 200, 40, 8),
            "float64",
        ),
        (
            "adaptive_max_pool",
            {"output_size": [70, 80], "return_indices": True, "layout": "NHWC"},
            (2, 280, 320, 64),
            "float64",
        ),
        ("adaptive_max_pool", {"output_size": 300}, (1, 2, 2100, 2100), "float64"),
        ("adaptive_avg_pool", {"output_size": 467_186}, (2, 2, 467_186), "float32"),
        ("adaptive_avg_pool", {"output_size": 2382}, (2, 2, 238_203), "float32"),
    ],
    ids=[
        "slopes of norms, channels last",
        "slopes of norms of one plane",
        "norms of windows larger than a block, channels last",
        "norms of more channels than a block",
        "norms of one number each",
        "maxima of planes, channels last",
        "maxima of many short planes",
        "maxima of many planes of one column",
        "a small sample of long windows that share much, channels last",
        "more outputs than inputs of one plane",
        "windows that differ, of many small volumes, channels last",
        "more windows than inputs along an axis, channels last",
        "more windows than inputs of many channels",
        "means of windows that differ, channels last",
        "windows larger than a block, channels last",
        "small windows of more channels than the scratch",
        "windows with gaps, channels last",
        "means of more channels than the scratch",
        "means of a large plane",
        "divisors of a large plane",
        "divisors of three axes",
        "long windows that share much, channels last",
        "a small sample of few long windows that overlap, channels last",
        "long windows that overlap, channels last",
        "maxima of windows that divide their inputs, channels last",
        "maxima of windows that divide a large plane",
        "means of one number each",
        "means of long windows of one plane",
    ],
)
def test_pooling_holds_its_workspace_whatever_the_size_of_a_sample(
    operation: str, config: dict[str, Any], x: tuple[int, ...], dtype: str, action: str
) -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": x}
    if action == "backward":
        shapes["dy"] = tuple(engine.plan(operation, config, {"x": x}).report()["shapes"]["y"])
    tensors = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    assert_workspace_holds(operation, action, config, tensors)
    specs = {name: engine.TensorSpec(shape, dtype) for name, shape in shapes.items()}
    call, samples = engine.prepare(operation, action, config, specs)
    assert call.cost(samples).workspace_bytes <= 12 << 20


@pytest.mark.parametrize(
    ("config", "x", "action"),
    [
        (
            {"layout": "NWC", "kernel": 80, "stride": 1, "dilation": 2, "return_indices": True},
            (8, 43461, 3),
            "forward",
        ),
        ({"kernel": 64, "stride": 1, "padding": 31}, (8, 3, 40000), "backward"),
        (
            {"kernel": [3, 11], "stride": [1, 3], "padding": [1, 5], "return_indices": True},
            (1, 2000, 26, 17),
            "forward",
        ),
    ],
    ids=["channels last", "gradients", "two axes"],
)
def test_positions_of_maxima_hold_the_workspace_whatever_the_numbers(
    config: dict[str, Any], x: tuple[int, ...], action: str
) -> None:
    """Where zeros of padding count, and where no number is above minus infinity."""
    config = {"pad_value": "zero", **config}
    tensors = {"x": np.full(x, -np.inf, np.float32)}
    if action == "backward":
        y = engine.plan("max_pool", config, {"x": x}).report()["shapes"]["y"]
        tensors["dy"] = np.ones(y, np.float32)
    assert_workspace_holds("max_pool", action, config, tensors)


def test_settling_nan_of_a_large_plane_holds_the_workspace() -> None:
    dy = np.zeros((1, 1, 7_000_000))
    dy[..., ::1000] = np.nan
    tensors = {"x": np.zeros((1, 1, 14_000_001)), "dy": dy}
    assert_workspace_holds("avg_pool", "backward", {"kernel": 3, "stride": 2}, tensors)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "config",
    [
        {"kernel": 1, "stride": 3},
        {"kernel": 2, "stride": 9, "dilation": 5},
        {"kernel": 3, "stride": 2000, "dilation": 700},
    ],
    ids=str,
)
def test_settling_nan_between_windows_holds_the_workspace(
    config: dict[str, Any], dtype: str
) -> None:
    x = np.full((1, 1, 3_000_001), np.nan, dtype)
    dy = np.ones_like(engine.forward("lp_pool", config, x=x)["y"])
    for p in (2, 2.5):
        assert_workspace_holds("lp_pool", "backward", config | {"p": p}, {"x": x, "dy": dy})


@pytest.mark.parametrize("lowest", [-1, 0])
@pytest.mark.parametrize("action", ["forward", "backward"])
@pytest.mark.parametrize(
    ("layout", "shape", "dtype"),
    [
        ("NCW", (1, 2, 1_000_000), "int64"),
        ("NWC", (1, 1_000_000, 2), "int64"),
        ("NWC", (1, 2, 1_000_000), "int64"),
        ("NCW", (1, 1, 2_000_000), "int32"),
    ],
    ids=["positions", "channels last", "channels", "indices that are widened"],
)
def test_unpooling_of_many_more_indices_than_outputs_holds_its_workspace(
    layout: str, shape: tuple[int, ...], dtype: str, action: str, lowest: int
) -> None:
    y = (1, shape[1], 5) if layout == "NCW" else (1, 5, shape[2])
    numbers = {"x": np.ones(shape)} if action == "forward" else {"dy": np.ones(y)}
    indices = np.random.default_rng(0).integers(lowest, 5, shape).astype(dtype)
    tensors, config = {"indices": indices, **numbers}, {"output_size": 5, "layout": layout}
    assert_workspace_holds("max_unpool", action, config, tensors)


@pytest.mark.parametrize("layout", ["NCW", "NWC"])
def test_indices_of_many_more_outputs_than_inputs_take_no_more(layout: str) -> None:
    rng = np.random.default_rng(0)
    shape, tail = (
        ([1, 4, 16], (1, 4 + 400_000, 16)) if layout == "NWC" else ([1, 16, 4], (1, 16, 400_004))
    )
    config = {"kernel": 1, "padding": 200_000, "layout": layout, "input_shape": shape}
    tensors: dict[str, np.ndarray] = {
        "indices": rng.integers(-1, 4, tail),
        "dy": np.ones(tail, np.float32),
    }
    specs = {name: engine.TensorSpec(a.shape, str(a.dtype)) for name, a in tensors.items()}
    call, samples = engine.prepare("max_pool", "backward", config, specs)
    peak = peak_beside_outputs(lambda: engine.run(call, tensors))
    assert peak <= get_threads() * call.cost(samples).workspace_bytes


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("size", [(1, 1), (2, 1), (3, 5)])
@pytest.mark.parametrize("operation", ["adaptive_avg_pool", "adaptive_max_pool"])
def test_many_planes_of_a_few_numbers_hold_the_workspace(
    operation: str, size: tuple[int, int], layout: str
) -> None:
    shape = (400_000, 5, *size) if layout == "NCHW" else (400_000, *size, 5)
    x = np.ones(shape, np.float64 if size == (1, 1) else np.float32)
    config = {"output_size": 1, "layout": layout}
    assert_workspace_holds(operation, "forward", config, {"x": x})
