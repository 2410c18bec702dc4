"""NaN, infinities, extreme sizes of numbers, and the dtypes that are converted."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import engine
from engine.errors import InvalidValue
from engine.kernels.activations.table import TABLE
from tests.engine import reference
from tests.engine.compare import assert_close, assert_same_bytes
from tests.engine.values import numbers

NAN, INF = np.nan, np.inf


def max_pool(x: list[float], **config: Any) -> tuple[list[float], list[int], list[float]]:
    """y, indices and dx (for dy of ones) of one signal, windows of 3 by default."""
    array = np.array(x, np.float64).reshape(1, 1, -1)
    config = {"kernel": 3, "return_indices": True} | config
    got = engine.forward("max_pool", config, x=array)
    dx = engine.backward("max_pool", config, x=array, dy=np.ones(got["y"].shape))["dx"]
    return got["y"].ravel().tolist(), got["indices"].ravel().tolist(), dx.ravel().tolist()


def test_nan_wins_and_the_first_of_several_has_the_gradient() -> None:
    y, indices, dx = max_pool([1, NAN, 5, NAN, 2, NAN])
    assert np.isnan(y).all()
    assert indices == [1, 3]
    assert dx == [0, 1, 0, 1, 0, 0]
    assert max_pool([1, NAN, 5, 7, INF, 2], ties="all")[2] == [0, 1, 0, 0, 1, 0]


def test_a_window_of_minus_infinity_still_has_an_index() -> None:
    assert max_pool([-INF, -INF, -INF, 0, -INF, -INF]) == ([-INF, 0], [0, 3], [1, 0, 0, 1, 0, 0])


def test_a_window_over_padding_alone() -> None:
    config: dict[str, Any] = {"kernel": 1, "padding": 1}
    assert max_pool([3, -4], **config) == ([-INF, 3, -4, -INF], [-1, 0, 1, -1], [1, 1])
    assert max_pool([3, -4], **config, ties="all")[2] == [1, 1]
    assert max_pool([3, -4], **config, pad_value="zero") == ([0, 3, -4, 0], [-1, 0, 1, -1], [1, 1])


def test_a_zero_of_the_padding_competes() -> None:
    config: dict[str, Any] = {"kernel": 2, "stride": 2, "padding": [[1, 1]], "pad_value": "zero"}
    assert max_pool([-1, 4, 0, 0], **config) == ([0, 4, 0], [-1, 1, 3], [0, 1, 0, 1])
    assert max_pool([0, 4, 0, -2], **config) == ([0, 4, 0], [-1, 1, -1], [0, 1, 0, 0])
    assert max_pool([0, 4, 4, 0], **config, ties="all")[2] == [1, 1, 1, 1]


def test_equal_zeros_of_both_signs_are_ties() -> None:
    assert max_pool([-0.0, 0.0, -1.0])[1:] == ([0], [1, 0, 0])
    assert max_pool([-0.0, 0.0, -1.0], ties="all")[2] == [1, 1, 0]


@pytest.mark.parametrize("return_indices", [False, True])
@pytest.mark.parametrize(
    ("operation", "config"),
    [
        ("adaptive_max_pool", {"output_size": 2}),
        ("max_pool", {"kernel": [3, 1], "stride": 1}),
        ("max_pool", {"kernel": 2, "stride": 1, "pad_value": "zero", "padding": 1}),
        ("max_pool", {"kernel": [30, 1], "stride": 1}),
    ],
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_backward_gives_the_zeros_that_forward_gives(
    operation: str, config: dict[str, Any], layout: str, return_indices: bool
) -> None:
    rng = np.random.default_rng(0)
    config = config | {"layout": layout, "return_indices": return_indices}
    shape = (4, 32, 9, 2) if layout == "NHWC" else (4, 2, 32, 9)
    x = rng.choice(np.array([-0.0, 0.0, -1.0], np.float32), shape)
    y = engine.forward(operation, config, x=x)["y"]
    got = engine.backward(operation, config, wants=["y", "dx"], x=x, dy=np.ones_like(y))
    assert_same_bytes({"y": got["y"]}, {"y": y})


@pytest.mark.parametrize("operation", ["avg_pool", "adaptive_avg_pool", "max_pool", "lp_pool"])
@pytest.mark.parametrize("special", [NAN, INF, -INF])
@pytest.mark.filterwarnings("ignore::RuntimeWarning:tests.engine.reference")
def test_specials_stay_in_their_windows(operation: str, special: float) -> None:
    """What one window contains changes no other, in every dimension of a channels-last image."""
    config: dict[str, Any] = {"kernel": 3, "stride": 2, "padding": 1, "layout": "NHWC"}
    if operation.startswith("adaptive"):
        config = {"output_size": 4, "layout": "NHWC"}
    x = numbers(1, (2, 9, 9, 3))
    clean = engine.forward(operation, config, x=x)["y"]
    x[1, 4, 5, 2] = special
    y = engine.forward(operation, config, x=x)["y"]
    assert_close({"y": y}, {"y": reference.forward(operation, config, x=x)["y"]})
    touched = ~np.isclose(y, clean)
    assert touched.any() or (operation, special) == ("max_pool", -INF)
    assert touched.sum() <= 4
    assert not touched[0].any()
    assert not touched[..., :2].any()


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("special", [NAN, INF])
@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
@pytest.mark.parametrize("channels", [2, 64])
def test_a_bad_number_stays_in_its_windows(operation: str, channels: int, special: float) -> None:
    """No algorithm behind `auto` may mix outputs that share no input."""
    x, w = numbers(2, (2, channels, 20, 20)), numbers(3, (channels, channels, 3, 3)) + 1 / 7
    clean = engine.forward(operation, {"padding": 1}, x=x, weight=w)["y"]
    x[1, 1, 9, 9] = special
    y = engine.forward(operation, {"padding": 1}, x=x, weight=w)["y"]
    near = np.zeros(y.shape, bool)
    near[1, :, 8:11, 8:11] = True
    assert not np.isfinite(y[near]).any()
    assert y[~near].tobytes() == clean[~near].tobytes()


def test_float16_rounds_no_index() -> None:
    """Though its maxima are worked out in float32, which has not every integer from 2**24 on."""
    x = np.zeros((1, 1, 2**24 + 2), np.float16)
    x[..., -1] = 1
    config = {"kernel": 2, "return_indices": True}
    assert engine.forward("max_pool", config, x=x)["indices"][0, 0, -1] == 2**24 + 1


LAYERS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("conv", {}, (8, 8, 1, 1)),
    ("conv", {"padding": 1, "stride": 2}, (8, 8, 3, 3)),
    ("conv", {"padding": 1, "algorithm": "winograd"}, (8, 8, 3, 3)),
    ("conv", {"padding": 1, "groups": 8}, (8, 1, 3, 3)),
    ("conv", {"padding": 1, "groups": 8, "stride": 2}, (8, 1, 3, 3)),
    ("conv", {"padding": 3, "groups": 8}, (8, 1, 7, 7)),
    ("conv", {"activation": "silu"}, (8, 8, 2, 2)),
    ("conv_transpose", {"stride": 2}, (8, 8, 2, 2)),
    ("conv_transpose", {"activation": "relu"}, (8, 8, 2, 2)),
    ("max_pool", {"kernel": 2}, ()),
    ("max_pool", {"kernel": 3, "stride": 2, "padding": 1}, ()),
    ("max_pool", {"kernel": 3, "stride": 2, "padding": 1, "ties": "all"}, ()),
    ("max_pool", {"kernel": 12, "stride": 2, "padding": 5}, ()),
    ("max_pool", {"kernel": 2, "padding": 1, "pad_value": "zero"}, ()),
    ("adaptive_max_pool", {"output_size": 3}, ()),
    ("avg_pool", {"kernel": 2}, ()),
    ("avg_pool", {"kernel": 3, "stride": 1, "padding": 1}, ()),
    ("adaptive_avg_pool", {"output_size": 1}, ()),
    ("adaptive_avg_pool", {"output_size": 5}, ()),
    ("lp_pool", {"kernel": 3, "p": 3}, ()),
    # Windows that stand apart along one axis only.
    ("max_pool", {"kernel": 2, "stride": [1, 2]}, ()),
    ("avg_pool", {"kernel": 2, "stride": [1, 2]}, ()),
    ("avg_pool", {"kernel": 3, "stride": [3, 2]}, ()),
    ("adaptive_avg_pool", {"output_size": [5, 6]}, ()),
    ("adaptive_max_pool", {"output_size": [6, 5]}, ()),
    ("lp_pool", {"kernel": 2, "stride": [2, 1]}, ()),
]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("operation", "config", "weight"), LAYERS, ids=str)
def test_every_nan_has_the_same_bits(
    operation: str, config: dict[str, Any], weight: tuple[int, ...], layout: str
) -> None:
    """Whatever sign and payload it came with, or was made with of infinities."""
    rng = np.random.default_rng(11)
    spoilt = partial(_spoilt, rng)
    config = config | {"layout": layout}
    x = rng.standard_normal((2, 8, 12, 12) if layout == "NCHW" else (2, 12, 12, 8))
    given = {"x": spoilt(x)}
    if weight:
        config["weight_layout"] = "IOHW" if operation == "conv_transpose" else "OIHW"
        given |= {"weight": spoilt(rng.standard_normal(weight)), "bias": spoilt(np.ones(8))}
        given["bias"][2] = -np.inf
    got = engine.forward(operation, config, **given)
    dy = spoilt(rng.standard_normal(got["y"].shape))
    got |= engine.backward(operation, config, None, **given, dy=dy)
    for name in got.keys() & {"y", "dx", "dweight", "dbias"}:
        a = got[name]
        assert set(a[np.isnan(a)].view(np.uint32).tolist()) <= {0x7FC00000}, name


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("biases", [[], [1.5, -2.0], [1.5, -NAN], [-INF, INF]], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_bias_makes_no_nan_of_other_bits(stride: int, biases: list[float]) -> None:
    rng = np.random.default_rng(12)
    given = {name: _spoilt(rng, rng.standard_normal((2, 2, 6))) for name in ("x", "weight")}
    if biases:
        given["bias"] = np.array(biases, np.float32)
    specs = {name: engine.TensorSpec(a.shape, "float32") for name, a in given.items()}
    call, _ = engine.prepare("conv_transpose", "forward", {"stride": stride}, specs)
    # Nothing is looked over twice.
    assert call.unsettled == ()
    y = engine.run(call, given)["y"]
    assert set(y[np.isnan(y)].view(np.uint32).tolist()) == {0x7FC00000}


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("special", [NAN, -INF])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("channels", "kernel", "config"),
    [
        (2, 3, {"stride": 2, "padding": 1, "groups": 2}),
        (2, 3, {"stride": 2, "padding": 1}),
        (2, 3, {"padding": 1, "dilation": 2}),
        (3, 4, {"stride": [3, 2], "padding": [[2, 0], [1, 2]], "dilation": [1, 2], "groups": 3}),
        (8, 3, {"stride": 2, "padding": 1, "groups": 8}),
    ],
    ids=["groups", "strided", "dilated", "both", "depthwise"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning:tests.engine.reference")
def test_a_bad_weight_reaches_what_outputs_gave(
    channels: int, kernel: int, config: dict[str, Any], layout: str, special: float
) -> None:
    """What no output stands for gives the gradient of x nothing, not a zero times infinity."""
    config = config | {"layout": layout, "weight_layout": "OIHW"}
    shape = (1, channels, 10, 8) if layout == "NCHW" else (1, 10, 8, channels)
    x, w = (
        numbers(8, shape),
        numbers(9, (channels, channels // config.get("groups", 1), *2 * [kernel])),
    )
    y = engine.forward("conv", config, x=x, weight=w)["y"]
    dy = numbers(10, y.shape)
    w[0, 0, 0, 1] = special
    got = engine.backward("conv", config, ["dx"], x=x, weight=w, dy=dy)
    want = reference.backward("conv", config, x=x, weight=w, dy=dy)["dx"]
    assert 0 < np.isfinite(want).sum() < want.size
    assert_close(got, {"dx": want})
    config["weight_layout"] = "IOHW"
    want = reference.forward("conv_transpose", config, x=dy, weight=w)["y"]
    assert 0 < np.isfinite(want).sum() < want.size
    assert_close(engine.forward("conv_transpose", config, x=dy, weight=w), {"y": want})


@pytest.mark.parametrize("name", sorted(reference.ACTIVATIONS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_at_extremes(name: str, dtype: str) -> None:
    """NaN stays NaN; large numbers of both signs give their limits without a warning."""
    far = 700.0 if dtype == "float64" else 80.0
    x = np.array([NAN, far, -far, 30, -30, 1e-8, -1e-8, 0], dtype).reshape(1, 1, -1)
    config = {"name": name}
    y = engine.forward("activation", config, x=x)["y"]
    dx = engine.backward("activation", config, x=x, dy=np.ones_like(x))["dx"]
    assert np.isnan(y[..., 0])
    want = reference.forward("activation", config, x=x[..., 1:])["y"]
    rtol, atol = (1e-12, 0) if dtype == "float64" else (1e-5, 1e-40)
    np.testing.assert_allclose(y[..., 1:], want, rtol, atol)
    slope = reference.backward("activation", config, x=x[..., 1:-1], dy=np.ones((1, 1, 6)))["dx"]
    rtol, atol = (1e-9, 1e-12) if dtype == "float64" else (1e-4, 1e-7)
    np.testing.assert_allclose(dx[..., 1:-1], slope, rtol, atol)
    assert name != "relu" or dx[..., -1] == 0


@pytest.mark.parametrize("infinite", [INF, -INF])
@pytest.mark.parametrize("name", ["gelu", "silu", "elu", "softplus", "tanh", "sigmoid", "selu"])
def test_activations_at_infinity(name: str, infinite: float) -> None:
    x = np.full((1, 1, 1), infinite)
    y = engine.forward("activation", {"name": name}, x=x)["y"].item()
    limits = {
        "tanh": (1, -1),
        "sigmoid": (1, 0),
        "elu": (INF, -1),
        "softplus": (INF, 0),
        "selu": (INF, -1.0507009873554805 * 1.6732632423543772),
    }
    if name in limits:
        assert y == pytest.approx(limits[name][infinite < 0])
    else:
        assert y == INF if infinite > 0 else (np.isnan(y) or y == 0)


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
def test_a_bad_gradient_ends_at_a_closed_relu(operation: str, bad: float) -> None:
    x, w = -np.ones((1, 2, 4, 4)), np.ones((2, 2, 1, 1))
    dy = np.full((1, 2, 4, 4), bad)
    got = engine.backward(operation, {"activation": "relu"}, x=x, weight=w, dy=dy)
    assert not any(a.any() for a in got.values())


@pytest.mark.parametrize("p", [2.0, 20.0])
def test_lp_pool_of_large_and_small_numbers(p: float) -> None:
    """Powers far apart do not disturb each other's windows."""
    x = np.array([3e3, -4e3, 2e-3, 1e-3]).reshape(1, 1, 4)
    config = {"kernel": 2, "p": p}
    got = engine.forward("lp_pool", config, x=x)
    got |= engine.backward("lp_pool", config, x=x, dy=np.ones((1, 1, 2)))
    big, small = (1 + 0.75**p) ** (1 / p) * 4e3, (1 + 0.5**p) ** (1 / p) * 2e-3
    np.testing.assert_allclose(got["y"].ravel(), [big, small], rtol=1e-12)


def test_lp_pool_of_zeros_has_no_gradient() -> None:
    for p in (0.5, 1, 2, 3.5):
        x = np.zeros((1, 1, 4))
        got = engine.backward("lp_pool", {"kernel": 2, "p": p}, ["y", "dx"], x=x, dy=x[..., :2] + 1)
        assert_close(got, {"y": np.zeros((1, 1, 2)), "dx": x})


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5])
@pytest.mark.parametrize(
    "config",
    [
        {"kernel": 2},
        {"kernel": 2, "stride": 3, "padding": 1},
        {"kernel": 2, "stride": 5, "dilation": 3},
        {"kernel": [1, 30], "stride": [7, 1], "dilation": [1, 2]},
        {"kernel": [3, 2], "stride": [1, 2], "dilation": [2, 1]},
    ],
    ids=str,
)
def test_what_no_window_of_lp_pool_covers_has_no_gradient(
    config: dict[str, Any], p: float, layout: str
) -> None:
    """Whatever stands there; elsewhere nothing depends on it. Windows of avg_pool cover the same."""
    x = numbers(11, (3, 4, 61, 63), dtype="float32")
    ones = np.ones(engine.forward("avg_pool", config, x=x)["y"].shape, np.float32)
    alone = engine.backward("avg_pool", config, x=x, dy=ones)["dx"] == 0
    assert alone.any()
    rng = np.random.default_rng(12)
    spoilt = np.where(alone, rng.choice([NAN, INF, -INF, 3], x.shape), x).astype(np.float32)
    config = config | {"p": p, "layout": layout}

    def dx(x: np.ndarray) -> np.ndarray:
        if layout == "NCHW":
            return engine.backward("lp_pool", config, x=x, dy=ones)["dx"]
        given = {"x": np.moveaxis(x, 1, -1), "dy": np.moveaxis(ones, 1, -1)}
        return np.moveaxis(engine.backward("lp_pool", config, None, **given)["dx"], -1, 1)

    plain, got = dx(x), dx(spoilt)
    assert not got[alone].any()
    assert got[~alone].tobytes() == plain[~alone].tobytes()


def test_a_nan_within_a_window_of_lp_pool_stays_beside_one_that_is_not() -> None:
    x = np.array([1, INF, NAN, 3, NAN]).reshape(1, 1, 5)
    dx = engine.backward("lp_pool", {"kernel": 2, "stride": 3}, x=x, dy=np.ones((1, 1, 2)))["dx"]
    np.testing.assert_array_equal(dx.ravel(), [0, NAN, 0, NAN, NAN])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_are_computed_as_float32(dtype: str) -> None:
    x = (numbers(4, (2, 2, 6, 6), "ties") + 2).astype(dtype)
    w = numbers(5, (3, 2, 3, 3), dtype="float32")
    got = engine.forward("conv", x=x, weight=w)
    assert_same_bytes(got, engine.forward("conv", x=x.astype(np.float32), weight=w))
    pooled = engine.forward("max_pool", {"kernel": 2, "return_indices": True}, x=x)
    assert pooled["y"].dtype == np.float32
    assert pooled["indices"].dtype == np.int64


def test_float16_is_rounded_once() -> None:
    """A sum that float16 could not carry is exact in float32 and rounded at the end."""
    x, w = np.full((1, 4096, 1), 0.5, np.float16), np.ones((1, 4096, 1), np.float16)
    w[0, 0] = 1 / 1024
    y = engine.forward("conv", x=x, weight=w)["y"]
    assert y.dtype == np.float16
    assert y.item() == np.float16(4095 / 2 + 1 / 2048)
    over = engine.forward("conv", x=x * np.float16(64), weight=w)["y"]
    assert over.item() == INF


@pytest.mark.parametrize("order", [">f4", ">f8"])
def test_other_byte_orders_are_read(order: str) -> None:
    x, w = numbers(6, (1, 2, 5)), numbers(7, (2, 2, 3))
    got = engine.forward("conv", x=x.astype(order), weight=w.astype(order))["y"]
    assert got.dtype == order.replace(">", "=")
    want = engine.forward("conv", x=x.astype(order[1:]), weight=w.astype(order[1:]))["y"]
    assert got.tobytes() == want.tobytes()


def _spoilt(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    """Numbers with infinities, and NaN of other bits than ours, among them."""
    bits = a.astype(np.float32).view(np.uint32)
    bits[rng.random(a.shape) < 0.02] = 0xFFC01234
    bits[rng.random(a.shape) < 0.02] = 0x7F800000
    bits[rng.random(a.shape) < 0.02] = 0xFF800000
    return bits.view(np.float32)


@pytest.mark.parametrize(
    ("dtype", "power"), [("float16", 126), ("float32", 126), ("int32", 126), ("float64", 1022)]
)
def test_exponents_of_norms_are_normal_numbers_as_their_inverses_are(
    dtype: str, power: int
) -> None:
    x = np.ones((1, 1, 2), dtype)
    for p in (2.0**-power, 2.0**power):
        assert not np.isnan(engine.forward("lp_pool", {"kernel": 2, "p": p}, x=x)["y"]).any()
    for p in (2.0**-power / 1.01, 2.0**power * 1.01):
        with pytest.raises(InvalidValue, match=f"from {2.0**-power}") as caught:
            engine.forward("lp_pool", {"kernel": 2, "p": p}, x=x)
        assert [(issue.loc, issue.got) for issue in caught.value.issues] == [(("config", "p"), p)]


@pytest.mark.parametrize(
    ("dtype", "large", "small"),
    [
        ("float16", 3.4e38, 2e-45),
        ("int8", 3.4e38, 2e-45),
        ("float32", 3.4e38, 2e-45),
        ("float64", 1.7e308, 5e-324),  # every number that is finite
    ],
)
@pytest.mark.parametrize("name", ["leaky_relu", "elu", "hard_sigmoid", "affine"])
def test_parameters_of_activations_are_numbers_that_the_dtype_holds(
    name: str, dtype: str, large: float, small: float
) -> None:
    parameters = [key for key, _ in TABLE[name].defaults]
    x = np.zeros((1, 1, 2), dtype)
    for value in (large, -large, small, -small, 0.0):
        config = {"name": name, **dict.fromkeys(parameters, value)}
        assert not np.isnan(engine.forward("activation", config, x=x)["y"]).any()
    beyond = () if dtype == "float64" else (large * 1.1, 1e300, small / 2)
    for value in (*beyond, *(-bound for bound in beyond)):
        config = {"name": name, **dict.fromkeys(parameters, value)}
        with pytest.raises(InvalidValue, match="cannot hold") as caught:
            engine.forward("activation", config, x=x)
        found = [(issue.loc, issue.got) for issue in caught.value.issues]
        assert found == [(("config", key), value) for key in parameters]


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
def test_parameters_of_fused_activations_are_numbers_that_the_dtype_holds(operation: str) -> None:
    config = {"activation": {"name": "affine", "slope": 1e300}}
    shapes = {"x": (1, 1, 3), "weight": (1, 1, 2)}
    engine.plan(operation, config, shapes, "float64")
    with pytest.raises(InvalidValue, match="cannot hold") as caught:
        engine.plan(operation, config, shapes, "float32")
    assert [issue.loc for issue in caught.value.issues] == [("config", "activation", "slope")]


def test_where_no_tap_meets_an_input_a_bad_weight_leaves_samples_to_themselves() -> None:
    """The gradient of x is then summed in another order, for those samples that are not finite."""
    config = {"stride": [3, 1], "padding": [[5, 4], [9, 7]], "groups": 33}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 33, 1, 13)).astype(np.float32)
    weight = rng.standard_normal((33, 1, 5, 11)).astype(np.float32)
    weight[2, 0, 0, 2] = np.inf
    y = engine.forward("conv", config, x=x, weight=weight)["y"]
    dy = rng.standard_normal(y.shape).astype(np.float32)
    dy[1, 0, 1, 7] = np.nan
    both = engine.backward("conv", config, ["dx"], x=x, weight=weight, dy=dy)["dx"]
    for n in range(2):
        own = slice(n, n + 1)
        alone = engine.backward("conv", config, ["dx"], x=x[own], weight=weight, dy=dy[own])["dx"]
        assert alone.tobytes() == both[own].tobytes()
    assert np.isfinite(both[0]).all()
    assert np.isnan(both[1]).any()
