"""One window that is the whole input, against plain sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import engine
from engine.geometry import Axis, strided_out
from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.direct import single
from tests.engine.memory import assert_workspace_holds


def layer(*axes: Axis, groups: int = 1, itemsize: int = 8) -> Correlation:
    return Correlation(axes, groups, 3, 5, "zeros", itemsize)


def whole(size: int, stride: int = 1) -> Axis:
    return Axis(size, size, stride, 1, 0, 0, 1)


LAYERS = [
    layer(whole(6)),
    layer(whole(4), whole(7, stride=2), groups=2),
    layer(whole(2), whole(3), whole(1)),
]


@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.parametrize("c", LAYERS, ids=["row", "groups", "volume"])
@pytest.mark.parametrize("cut", [{}, {"ROWS": 7, "WHOLE": 1, "WIDTH": 2}], ids=["whole", "cut"])
def test_values(
    c: Correlation, bad: float | None, cut: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cut.items():
        monkeypatch.setattr(single, name, value)
    rng = np.random.default_rng(0)
    x, dx = rng.standard_normal((2, 4, c.groups, c.channels, *c.kernel))
    w = rng.standard_normal((c.groups, c.outputs, c.channels * c.taps))
    bias = rng.standard_normal((c.groups, c.outputs))
    dy, y = rng.standard_normal((2, 4, c.groups, c.outputs, *c.positions))
    if bad is not None:
        x[1, 0, 1].flat[-1] = dy[2, 0, 0] = bad
    with np.errstate(invalid="ignore"):
        dispatch.correlate(c, x, w, bias, y)
        dispatch.correlate_input(c, dy, w, dx)
        want = np.einsum("goi,ngi->ngo", w, x.reshape(4, c.groups, -1)) + bias
        adjoint = np.einsum("goi,ngo->ngi", w, dy.reshape(4, c.groups, -1))
    assert single.window(c) is not None
    np.testing.assert_allclose(y.reshape(want.shape), want, 1e-12, 1e-12)
    np.testing.assert_allclose(dx.reshape(adjoint.shape), adjoint, 1e-12, 1e-12)


def test_arrays_that_lie_otherwise_go_another_way() -> None:
    """As strips of a map do: the values are those of arrays in order."""
    c = LAYERS[1]
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 2, 3, 7, 4)).swapaxes(3, 4), rng.standard_normal((2, 5, 84))
    got, want = np.empty((2, 2, 2, 5, 1, 1))
    assert single.column(c, x) is None
    dispatch.correlate(c, x, w, None, got)
    dispatch.correlate(c, np.ascontiguousarray(x), w, None, want)
    np.testing.assert_allclose(got, want, 1e-12, 1e-12)
    dy, dx = got, np.full_like(x, np.nan)
    assert not dx.flags.c_contiguous
    dispatch.correlate_input(c, dy, w, dx)
    np.testing.assert_allclose(dx.reshape(2, 2, -1), np.einsum("goi,ngo->ngi", w, dy[..., 0, 0]))


@pytest.mark.parametrize("samples", [1, 5, 9])
@pytest.mark.parametrize("cut", [{}, {"ROWS": 300, "WHOLE": 1, "WIDTH": 100}], ids=["whole", "cut"])
def test_a_sample_has_the_same_bits_in_any_company(
    samples: int, cut: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single, "SHARED_FLOPS", 1)
    for name, value in cut.items():
        monkeypatch.setattr(single, name, value)
    c, rng = layer(whole(9), whole(9), itemsize=4), np.random.default_rng(0)
    w = rng.standard_normal((1, c.outputs, c.channels * c.taps), np.float32)
    dy = rng.standard_normal((samples, 1, c.outputs, 1, 1), np.float32)
    dx = np.empty((samples, 1, c.channels, *c.kernel), np.float32)
    y = np.empty_like(dy)
    dispatch.correlate_input(c, dy, w, dx)
    dispatch.correlate(c, dx, w, None, y)
    for n in range(samples):
        own, dx_alone, y_alone = slice(n, n + 1), np.empty_like(dx[:1]), np.empty_like(y[:1])
        dispatch.correlate_input(c, dy[own], w, dx_alone)
        dispatch.correlate(c, dx[own], w, None, y_alone)
        assert dx_alone.tobytes() == dx[own].tobytes()
        assert y_alone.tobytes() == y[own].tobytes()


@pytest.mark.parametrize(
    "c",
    [
        replace(LAYERS[0], channels_last=True),
        replace(LAYERS[0], mode="reflect"),
        layer(Axis(7, 6, 2, 1, 0, 0, 1)),
        layer(Axis(4, 6, 1, 1, 1, 1, 1)),
        layer(Axis(6, 6, 1, 1, 0, 2, strided_out(6, 6, 1, 0, 2))),
        layer(Axis(1, 1, 1, 1, 0, 0, 1)),
    ],
    ids=["channels last", "padding mode", "beyond", "padding", "several", "1x1"],
)
def test_others_are_left_to_others(c: Correlation) -> None:
    assert single.window(c) is None


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_gradient_of_the_weight_is_a_sum_also_of_one_sample(layout: str, samples: int) -> None:
    """0 and -0.0 come to 0.0."""
    x, w = -np.ones((samples, 3, 3, 3), np.float32), np.ones((3, 3, 3, 3), np.float32)
    dy = np.zeros((samples, 3, 1, 1) if layout == "NCHW" else (samples, 1, 1, 3), np.float32)
    found = engine.backward("conv", {"layout": layout}, ["dweight"], x=x, weight=w, dy=dy)
    assert not np.signbit(found["dweight"]).any()


@pytest.mark.parametrize("order", ["OIHW", "HWIO", "OHWI", "HWOI"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("rows", [(2, 0, 1, 3), (1, 1, 1, 1, 1, 1)], ids=["unlike", "one each"])
@pytest.mark.parametrize(("taps", "groups"), [(5, 1), (1, 1), (1, 2)])
def test_gradients_of_weights_are_those_of_each_request(
    order: str,
    layout: str,
    small: bool,
    rows: tuple[int, ...],
    taps: int,
    groups: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if small:
        monkeypatch.setattr(single, "MOST_WORK", 100)
        monkeypatch.setattr(single, "ROWS", 50)
        monkeypatch.setattr(single, "WHOLE", 50)
        monkeypatch.setattr(single, "WIDTH", 3)
        monkeypatch.setattr(single, "OUTER", 20)
        monkeypatch.setattr(single, "SHARED_FLOPS", 1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4, taps, taps))
    w, dy = rng.standard_normal((6, 4 // groups, taps, taps)), rng.standard_normal((6, 6, 1, 1))
    axes = ["OIHW".index(letter) for letter in order]
    last = layout == "NHWC"
    given = {
        "x": np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x,
        "weight": np.ascontiguousarray(w.transpose(axes)),
        "dy": dy.reshape(6, 1, 1, 6) if last else dy,
    }
    specs = {name: engine.TensorSpec(a.shape, "float64") for name, a in given.items()}
    config = {"layout": layout, "weight_layout": order, "groups": groups}
    call, _ = engine.prepare("conv", "backward", config, specs, None)
    found = engine.run(call, given, rows)
    halves = [half.reshape(6, groups, -1, *half.shape[2:]) for half in (x, dy)]
    split = w.reshape(groups, -1, *w.shape[1:])
    dx = np.einsum("goihw,ngo->ngihw", split, halves[1][..., 0, 0]).reshape(x.shape)
    np.testing.assert_allclose(found["dx"], np.moveaxis(dx, 1, -1) if last else dx, 1e-12, 1e-12)
    start = 0
    for request, count in enumerate(rows):
        own = slice(start, start + count)
        want = np.einsum("ngo,ngihw->goihw", halves[1][own, ..., 0, 0], halves[0][own])
        want = want.reshape(w.shape).transpose(axes)
        np.testing.assert_allclose(found["dweight"][request], want, 1e-12, 1e-12)
        alone = {name: a if name == "weight" else a[own] for name, a in given.items()}
        if count:
            own_bits = engine.run(call, alone, (count,))["dweight"][0].tobytes()
            assert own_bits == np.ascontiguousarray(found["dweight"][request]).tobytes()
        start += count


def test_sums_over_parts_of_the_weights_fit_the_scratch(
    traced: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many samples and groups they would be as large as all results."""
    monkeypatch.setattr(single, "WHOLE", 1)
    monkeypatch.setattr(single, "ROWS", 1 << 12)
    rng = np.random.default_rng(0)
    tensors = {
        "x": rng.standard_normal((64, 512, 16, 16), np.float32),
        "weight": rng.standard_normal((1024, 1, 16, 16), np.float32),
        "dy": rng.standard_normal((64, 1024, 1, 1), np.float32),
    }
    assert_workspace_holds("conv", "backward", {"groups": 512}, tensors, ["dx"])
