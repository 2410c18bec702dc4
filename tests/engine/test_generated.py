"""Legal layers of every operation, as Hypothesis makes them, against the slow reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import engine
from tests.engine import laws, reference
from tests.engine.compare import assert_close, assert_same_bytes
from tests.engine.strategies import LAYERS, Arrays, Layer

EACH = pytest.mark.parametrize("operation", sorted(LAYERS))


def answer(layer: Layer, dtype: str = "float64") -> tuple[Arrays, Arrays]:
    given_tensors = layer.given(dtype)
    forward = engine.forward(layer.operation, layer.config, **given_tensors)
    return forward, laws.backward(layer, given_tensors, layer.dy(forward["y"]))


@EACH
@given(data=st.data())
def test_float64_matches_the_reference(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    for got, want in zip(answer(layer), layer.expected(), strict=True):
        assert_close(got, want, about=layer)


@EACH
@given(data=st.data(), dtype=st.sampled_from(["float32", "float16"]))
def test_other_dtypes_match_the_reference(operation: str, dtype: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    expected = layer.expected()
    # An exponential soon leaves the range of float16.
    largest = max(np.abs(a).max(initial=0) for made in expected for a in made.values())
    assume(dtype != "float16" or not 30_000 < largest < np.inf)
    for got, want in zip(answer(layer, dtype), expected, strict=True):
        assert {str(a.dtype) for name, a in got.items() if name != "indices"} == {dtype}
        assert_close(got, want, dtype, layer)


@EACH
@given(data=st.data())
def test_plan_knows_every_shape(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    report = engine.plan(operation, layer.config, layer.shapes, "float64").report()
    forward, gradients = answer(layer)
    shapes = {name: tuple(shape) for name, shape in report["shapes"].items()}
    for name, a in (forward | gradients).items():
        assert shapes[name] == a.shape, f"{name} of {layer}"
    for name, shape in layer.shapes.items():
        assert shapes[name] == shape
    if operation != "activation":
        assert len(report["padding"]) == layer.rank


@EACH
@given(data=st.data())
def test_wants_picks_gradients_and_y(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    tensors = layer.given()
    forward = engine.forward(operation, layer.config, **tensors)
    dy = layer.dy(forward["y"])
    every = laws.backward(layer, tensors, dy)
    wants = data.draw(st.lists(st.sampled_from([*every, "y"]), min_size=1, unique=True))
    # The gradient of max_unpool does without x, but y does not.
    got = engine.backward(operation, layer.config, wants, **tensors, dy=dy)
    assert_same_bytes(got, {name: (every | forward)[name] for name in wants}, layer)


@EACH
@given(data=st.data())
def test_inputs_are_left_alone_and_may_be_views(operation: str, data: st.DataObject) -> None:
    """Read-only, backwards and strided arrays are taken as they are, and nothing is written."""
    layer = data.draw(LAYERS[operation])
    plain = layer.given()
    awkward = {}
    for name, a in plain.items():
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        view = wide[..., ::-2]
        view[...] = a
        view.flags.writeable = False
        awkward[name] = view
    got = engine.forward(operation, layer.config, **awkward)
    assert_same_bytes(got, engine.forward(operation, layer.config, **plain), layer)
    dy = layer.dy(got["y"])
    assert_same_bytes(
        laws.backward(layer, awkward, np.asfortranarray(dy)),
        laws.backward(layer, plain, dy),
        layer,
    )
    assert_same_bytes(awkward, plain, layer)


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
@given(data=st.data())
def test_dbias_may_be_asked_for_without_a_bias(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    tensors = layer.given()
    tensors.pop("bias", None)
    dy = layer.dy(engine.forward(operation, layer.config, **tensors)["y"])
    assert "dbias" not in engine.backward(operation, layer.config, None, **tensors, dy=dy)
    got = engine.backward(operation, layer.config, ["dbias"], **tensors, dy=dy)
    want = reference.backward(operation, layer.config, ["dbias"], **tensors, dy=dy)
    assert_close(got, want, about=layer)


@pytest.mark.parametrize("operation", ["max_pool"])
@given(data=st.data())
def test_max_pool_goes_back_from_indices(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    config = {k: v for k, v in layer.config.items() if k != "ties"} | {"return_indices": True}
    x = layer.given()["x"]
    forward = engine.forward(operation, config, x=x)
    dy = layer.dy(forward["y"])
    want = reference.backward(operation, config, x=x, dy=dy)
    config["input_shape"] = list(x.shape)
    got = engine.backward(operation, config, indices=forward["indices"], dy=dy)
    assert_close(got, want, about=layer)
