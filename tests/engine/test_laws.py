"""The laws, on generated layers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.threads import get_threads
from tests.engine import laws
from tests.engine.strategies import CURVED, LAYERS, LINEAR, Layer, conv, conv_transpose

SMOOTH = ["elu", "gelu", "silu", "sigmoid", "tanh", "softplus", "exponential", "selu"]


@pytest.fixture
def threads() -> Iterator[None]:
    """Put the number of threads back."""
    before = get_threads()
    yield
    engine.set_threads(before)


@pytest.mark.parametrize("operation", sorted(LINEAR))
@given(data=st.data())
def test_adjoint(operation: str, data: st.DataObject) -> None:
    laws.adjoint(data.draw(LINEAR[operation]))


@pytest.mark.parametrize("padding", ["same", "same_lower"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation"),
    [(9, 3, 2, 1), (10, 3, 2, 1), (10, 4, 3, 1), (11, 2, 3, 2), (7, 5, 1, 1), (7, 1, 3, 1)],
)
def test_a_transposed_same_of_a_given_size_is_the_adjoint_of_same(
    size: int, kernel: int, stride: int, dilation: int, padding: str
) -> None:
    rng = np.random.default_rng(5)
    config = {"stride": stride, "dilation": dilation, "padding": padding}
    x, weight = rng.standard_normal((2, 3, size)), rng.standard_normal((4, 3, kernel))
    y = engine.forward("conv", config, x=x, weight=weight)["y"]
    dy = rng.standard_normal(y.shape)
    config |= {"output_size": size}
    back = engine.forward("conv_transpose", config, x=dy, weight=weight)["y"]
    assert back.shape == x.shape
    laws.assert_equal_sums(laws.inner(y, dy), laws.inner(x, back), laws.size_of(y, dy))


@pytest.mark.parametrize("operation", sorted(LINEAR))
@given(data=st.data())
def test_linearity(operation: str, data: st.DataObject) -> None:
    laws.linearity(data.draw(LINEAR[operation]))


@pytest.mark.parametrize("operation", sorted(CURVED))
@given(data=st.data())
def test_finite_differences(operation: str, data: st.DataObject) -> None:
    laws.differences(data.draw(CURVED[operation]))


@given(data=st.data(), activation=st.sampled_from(SMOOTH))
def test_finite_differences_of_fused_layers(activation: str, data: st.DataObject) -> None:
    layer = data.draw(st.one_of(conv(plain=True), conv_transpose(plain=True)))
    layer = Layer(**(vars(layer) | {"config": layer.config | {"activation": activation}}))
    laws.differences(layer)


@pytest.mark.parametrize("operation", sorted(LAYERS))
@given(
    data=st.data(),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    dtype=st.sampled_from(["float32", "float64", "float16"]),
)
def test_batched_as_alone(operation: str, dtype: str, rows: list[int], data: st.DataObject) -> None:
    laws.batched_as_alone(data.draw(LAYERS[operation]), rows, dtype)


@pytest.mark.parametrize("operation", sorted(LAYERS))
@pytest.mark.usefixtures("threads")
def test_threads_change_no_bit(operation: str) -> None:
    @settings(max_examples=40)
    @given(LAYERS[operation])
    def law(layer: Layer) -> None:
        laws.same_under_threads(layer, [1, 2, 3])

    law()
