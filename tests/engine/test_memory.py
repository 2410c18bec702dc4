"""Work goes through a scratch of stated size, whatever the size of the input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine.kernels.activations.table import TABLE
from engine.threads import get_threads
from tests.engine.memory import (
    assert_workspace_holds,
    peak_beside_outputs,
    peak_on_a_new_thread,
)

pytestmark = pytest.mark.usefixtures("traced")

SLACK = 1 << 20
"""For Python's own objects and NumPy's temporaries of a block."""

LAYERS: list[tuple[str, str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ("conv", "im2col of 290 MB", {"padding": 1}, (8, 64, 112, 112), (32, 64, 3, 3)),
    ("conv", "one sample of 230 MB", {"padding": 2}, (1, 32, 272, 272), (16, 32, 5, 5)),
    ("conv", "channels last", {"padding": 1, "layout": "NHWC"}, (4, 112, 112, 64), (3, 3, 64, 32)),
    ("conv", "strided", {"padding": 1, "stride": 2}, (8, 64, 112, 112), (32, 64, 3, 3)),
    (
        "conv",
        "reflected",
        {"padding": 1, "padding_mode": "reflect"},
        (8, 64, 112, 112),
        (8, 64, 3, 3),
    ),
    (
        "conv",
        "reflected, channels last",
        {"padding": 1, "padding_mode": "reflect", "layout": "NHWC"},
        (2, 224, 224, 64),
        (3, 3, 64, 8),
    ),
    (
        "conv",
        "a ReLU inside",
        {"padding": 1, "activation": "relu"},
        (8, 64, 112, 112),
        (8, 64, 3, 3),
    ),
    ("conv_transpose", "stride 2", {"stride": 2}, (4, 64, 56, 56), (64, 32, 3, 3)),
    ("conv_transpose", "stride 32", {"stride": 32}, (2, 21, 16, 16), (21, 21, 64, 64)),
    ("max_pool", "overlapping", {"kernel": 5, "stride": 1, "padding": 2}, (4, 64, 112, 112), ()),
    (
        "max_pool",
        "channels last",
        {"kernel": 5, "stride": 1, "padding": 2, "layout": "NHWC"},
        (4, 112, 112, 64),
        (),
    ),
    ("avg_pool", "overlapping", {"kernel": 5, "stride": 1, "padding": 2}, (4, 64, 112, 112), ()),
    ("lp_pool", "overlapping", {"kernel": 5, "stride": 1, "padding": 2}, (4, 64, 112, 112), ()),
    ("adaptive_avg_pool", "", {"output_size": 7}, (8, 64, 112, 112), ()),
    ("adaptive_max_pool", "", {"output_size": 7}, (8, 64, 112, 112), ()),
]


@pytest.mark.parametrize(
    ("operation", "name", "config", "size", "taps"),
    LAYERS,
    ids=[f"{op} {n}" for op, n, *_ in LAYERS],
)
def test_scratch_stays_within_the_stated_bound(
    operation: str, name: str, config: dict[str, Any], size: tuple[int, ...], taps: tuple[int, ...]
) -> None:
    tensors = {"x": np.ones(size, np.float32)}
    if taps:
        tensors["weight"] = np.ones(taps, np.float32)
    weight = tensors.get("weight", np.zeros(0)).nbytes
    bound = get_threads() * engine.SCRATCH_BYTES + 2 * weight + SLACK
    shape = engine.plan(operation, config, {k: a.shape for k, a in tensors.items()}).report()
    dy = np.ones(shape["shapes"]["y"], np.float32)
    # The value before an activation is worked out once more; it has the size of y.
    again = dy.nbytes if "activation" in config else 0
    forward = peak_beside_outputs(lambda: engine.forward(operation, config, **tensors))
    backward = peak_beside_outputs(
        lambda: engine.backward(operation, config, None, **tensors, dy=dy)
    )
    assert forward <= bound, f"{name} forward: {forward / 2**20:.1f} MiB"
    assert backward <= bound + again, f"{name} backward: {backward / 2**20:.1f} MiB"


def test_tiles_that_turn_out_to_be_plain_sums_stay_within_the_plan() -> None:
    rng, taps = np.random.default_rng(0), (8, 64, 3, 3)
    x, weight = (rng.standard_normal(size, np.float32) for size in ((1, 64, 24, 200), taps))
    x[:, 0, ::2, ::2] = np.inf
    tensors = {"x": x, "weight": weight}
    specs = {name: (a.shape, "float32") for name, a in tensors.items()}
    config = {"algorithm": "winograd", "padding": 2}
    call, _ = engine.prepare("conv", "forward", config, specs)
    assert call.plan.algorithm == "winograd"
    assert_workspace_holds("conv", "forward", config, tensors)


@pytest.mark.parametrize(
    ("size", "taps", "padding"),
    [
        ((30, 32, 20, 20), (8, 32, 3, 3), 1),
        ((1, 8, 300, 300), (8, 8, 3, 3), 1),
        ((2, 16, 60, 60), (4, 16, 5, 5), 59),
        ((1, 1, 300_000), (1, 1, 80), 299_999),
    ],
    ids=["samples", "one sample", "as much as there is", "a line"],
)
def test_gradients_of_repeated_inputs_stay_within_the_plan(
    size: tuple[int, ...], taps: tuple[int, ...], padding: int
) -> None:
    config = {"padding": padding, "padding_mode": "reflect"}
    sizes = {"x": size, "weight": taps}
    sizes["dy"] = tuple(engine.plan("conv", config, sizes).report()["shapes"]["y"])
    tensors = {name: np.ones(shape, np.float32) for name, shape in sizes.items()}
    assert_workspace_holds("conv", "backward", config, tensors, ["dx"])


@pytest.mark.parametrize(
    ("config", "x", "weight"),
    [
        ({}, (10**6, 4096, 10**5, 10**5), (4096, 4096, 99, 99)),
        ({}, (1, 64, 10**5, 10**5), (64, 64, 3, 3)),
        ({}, (1, 10**8, 7, 7), (8, 10**8, 5, 5)),
        ({"stride": [1, 10**6]}, (1, 1, 1, 3 * 10**6), (1, 1, 1, 3)),
        ({"stride": 10**5}, (1, 1, 10**6), (1, 1, 10**5)),
        ({"stride": [1, 2], "dilation": [10**5, 1]}, (1, 1, 10**6, 2), (1, 1, 3, 1)),
        ({"padding": 10**7, "padding_mode": "replicate"}, (1, 1, 3, 3), (1, 1, 2, 2)),
    ],
    ids=["patches", "tiles", "channels", "stride", "as many taps", "dilation", "padding"],
)
def test_planning_allocates_nothing(
    config: dict[str, Any], x: tuple[int, ...], weight: tuple[int, ...]
) -> None:
    shapes = {"x": x, "weight": weight}

    def planned() -> dict[str, np.ndarray]:
        report = engine.plan("conv", config, shapes).report()
        specs = {name: (tuple(report["shapes"][name]), "float32") for name in (*shapes, "dy")}
        call, samples = engine.prepare("conv", "backward", config, specs)
        assert call.cost(samples).workspace_bytes >= report["bytes"]["workspace"]
        return {}

    assert peak_beside_outputs(planned) < SLACK


@pytest.mark.parametrize(
    ("operation", "config", "weight"),
    [
        ("conv", {"padding": 10**6}, (1, 1, 2, 2)),
        ("conv_transpose", {"stride": 10**6}, (1, 1, 2, 2)),
        ("max_pool", {"kernel": 1, "padding": 10**6, "ties": "all"}, ()),
        ("adaptive_avg_pool", {"output_size": 10**6}, ()),
    ],
)
def test_no_samples_are_no_work(
    operation: str, config: dict[str, Any], weight: tuple[int, ...]
) -> None:
    given = {"x": (0, 1, 4, 4)} | ({"weight": weight} if weight else {})
    planned = engine.plan(operation, config, given)
    tensors = {name: np.ones(shape, np.float32) for name, shape in given.items()}
    dy = np.ones(planned.plan.shape("y", 0), np.float32)
    assert min(dy.shape[2:]) >= 10**6
    found: dict[str, np.ndarray] = {}

    def compute() -> dict[str, np.ndarray]:
        found.update(engine.forward(operation, config, **tensors))
        found.update(engine.backward(operation, config, None, **tensors, dy=dy))
        return found

    assert peak_beside_outputs(compute) < SLACK
    shapes = {"y": dy.shape} | {f"d{name}": shape for name, shape in given.items()}
    assert {name: a.shape for name, a in found.items()} == shapes
    assert not any(a.any() for a in found.values())


def test_the_plan_states_the_workspace() -> None:
    report = engine.plan("conv", {"padding": 1}, {"x": (8, 64, 112, 112), "weight": (32, 64, 3, 3)})
    assert 0 < report.report()["bytes"]["workspace"] <= 4 * engine.SCRATCH_BYTES


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    ("config", "size", "taps", "rows"),
    [
        ({"padding": 1}, (64, 56, 56), (64, 64, 3, 3), (1,) * 48),
        ({"padding": 3, "stride": 2}, (3, 64, 64), (64, 3, 7, 7), (1,) * 48),
        ({"padding": 2}, (32, 10, 10), (64, 32, 5, 5), (8,) * 32),
        # One request of several blocks, and so many that are summed beside it.
        ({}, (64, 9), (64, 64, 2), (1,) * 50 + (90,) + (2,) * 40),
        (
            {"padding": 1, "layout": "NHWC", "groups": 9000},
            (1, 2, 9000),
            (3, 3, 1, 9000),
            (1,) * 16,
        ),
        ({"layout": "NDHWC", "groups": 3000}, (3, 3, 3, 3000), (3, 3, 3, 1, 3000), (1, 2, 0, 1)),
    ],
)
def test_many_requests_share_the_workspace_of_one(
    config: dict[str, Any], size: tuple[int, ...], taps: tuple[int, ...], rows: tuple[int, ...]
) -> None:
    samples = sum(rows)
    given = {"x": (samples, *size), "weight": taps}
    planned = engine.plan("conv", config, given)
    given["dy"] = planned.plan.shape("y", samples)
    rng = np.random.default_rng(0)
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in given.items()}
    specs = {name: engine.TensorSpec(a.shape, "float32") for name, a in tensors.items()}
    call, _ = engine.prepare("conv", "backward", config, specs, ["dweight"])
    peak = peak_on_a_new_thread(call, tensors, rows)
    assert 0 < peak <= planned.report()["bytes"]["workspace"]


@pytest.mark.parametrize(
    ("action", "config", "dtype", "made"),
    [
        ("forward", {}, "float32", ()),
        ("backward", {}, "float32", ()),
        # The values before an activation are worked out once more.
        ("forward", {"activation": "relu"}, "float32", ()),
        ("backward", {"activation": "relu"}, "float32", ("y",)),
        # float16 is computed in float32, and so is every tensor of it kept there.
        ("forward", {}, "float16", ("x", "y")),
        ("backward", {"activation": "relu"}, "float16", ("x", "dy", "dx", "y")),
    ],
)
def test_samples_add_to_the_workspace_what_is_made_for_each(
    action: str, config: dict[str, Any], dtype: str, made: tuple[str, ...]
) -> None:
    def workspace(samples: int) -> int:
        shapes = {"x": (samples, 3, 8, 8), "weight": (4, 3, 3, 3)}
        if action == "backward":
            shapes["dy"] = (samples, 4, 6, 6)
        specs = {name: engine.TensorSpec(shape, dtype) for name, shape in shapes.items()}
        call, _ = engine.prepare("conv", action, config, specs)
        return call.cost(samples).workspace_bytes

    numbers = {"x": 3 * 8 * 8, "dx": 3 * 8 * 8, "y": 4 * 6 * 6, "dy": 4 * 6 * 6}
    assert workspace(101) - workspace(1) == 100 * 4 * sum(numbers[name] for name in made)


@pytest.mark.parametrize("between", [0, 1])
def test_tensors_between_addresses_are_copied_once(between: int) -> None:
    shape = (8, 64, 112, 112)
    size = 4 * int(np.prod(shape))
    x = np.zeros(size + 1, np.uint8)[between : between + size].view(np.float32).reshape(shape)
    call, samples = engine.prepare(
        "max_pool", "forward", {"kernel": 2}, {"x": engine.TensorSpec(shape, "float32")}
    )
    engine.run(call, {"x": x})
    peak = peak_beside_outputs(lambda: engine.run(call, {"x": x}))
    assert between * size <= peak <= between * size + call.cost(samples).workspace_bytes


@pytest.mark.parametrize("action", ["forward", "backward"])
@pytest.mark.parametrize(
    ("operation", "config", "given"),
    [
        (
            "conv",
            {"layout": "NHWC"},
            {"x": (1, 9, 6, 256), "weight": (3, 3, 256, 256), "dy": (1, 7, 4, 256)},
        ),
        (
            "conv",
            {},
            {"x": (1, 2560, 3, 19), "weight": (3, 2560, 3, 3), "dy": (1, 3, 1, 17)},
        ),
        (
            "conv",
            {"padding": [0, 1, 1], "algorithm": "winograd"},
            {"x": (1, 1, 9, 4, 4), "weight": (3600, 1, 9, 3, 3), "dy": (1, 3600, 1, 4, 4)},
        ),
        (
            "conv",
            {"padding": 1, "algorithm": "winograd"},
            {"x": (1, 1200, 8, 12), "weight": (128, 1200, 3, 3), "dy": (1, 128, 8, 12)},
        ),
        (
            "conv",
            {"groups": 3, "padding": 15},
            {"x": (1, 3, 40, 700), "weight": (3, 1, 31, 31), "dy": (1, 3, 40, 700)},
        ),
        (
            "lp_pool",
            {"kernel": [2, 7, 5], "stride": [2, 1, 1], "padding": "same"},
            {"x": (20, 16, 9, 15, 3), "dy": (20, 16, 5, 15, 3)},
        ),
        *(
            (
                operation,
                {"kernel": 4, "stride": 1, "dilation": 10**6, "padding": "same"},
                {"x": (1, 1, 4), "dy": (1, 1, 4)},
            )
            for operation in ("max_pool", "avg_pool", "lp_pool")
        ),
        (
            "conv_transpose",
            {"stride": [1, 2], "dilation": [10**4, 8], "padding": "same"},
            {"x": (1, 1, 7, 2), "weight": (1, 1, 30, 1), "dy": (1, 1, 7, 4)},
        ),
        (
            "adaptive_max_pool",
            {"layout": "NDHWC", "output_size": [360, 2, 2]},
            {"x": (2, 1, 6, 43, 40), "dy": (2, 360, 2, 2, 40)},
        ),
    ],
    ids=[
        "copies of a weight in another order",
        "short rows of many windows",
        "filters of one channel that are transformed",
        "larger tiles for the gradient",
        "wide maps of few channels",
        "more padding than inputs",
        "maxima far apart",
        "means far apart",
        "norms far apart",
        "taps far apart",
        "more outputs than inputs",
    ],
)
def test_the_workspace_holds(
    operation: str, config: dict[str, Any], given: dict[str, tuple[int, ...]], action: str
) -> None:
    rng = np.random.default_rng(0)
    tensors = {
        name: rng.standard_normal(shape)
        for name, shape in given.items()
        if name != "dy" or action == "backward"
    }
    assert_workspace_holds(operation, action, config, tensors)


@pytest.mark.parametrize("action", ["forward", "backward"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("name", TABLE)
def test_activations_hold_the_workspace(
    name: str, approximate: bool, dtype: str, action: str
) -> None:
    activation = {"name": name} | ({"approximate": approximate} if name == "gelu" else {})
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 1, 300_000), "weight": (1, 1, 2), "dy": (1, 1, 299_999)}
    tensors = {
        tensor: rng.uniform(0.7, 1.5, shape).astype(dtype)
        for tensor, shape in shapes.items()
        if tensor != "dy" or action == "backward"
    }
    assert_workspace_holds("conv", action, {"activation": activation}, tensors)
    # Where gelu is all but constant it holds most.
    far = tensors["x"] * 20 if name == "gelu" else tensors["x"]
    alone = {"x": far} | ({"dy": tensors["x"]} if action == "backward" else {})
    assert_workspace_holds("activation", action, activation, alone)


@pytest.mark.usefixtures("traced")
def test_bands_of_very_many_channels_hold_the_workspace() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 20_000, 8, 1))
    weight = rng.standard_normal((20_000, 1, 2, 3))
    config = {"stride": [2, 1], "groups": 20_000}
    assert_workspace_holds("conv_transpose", "forward", config, {"x": x, "weight": weight})
