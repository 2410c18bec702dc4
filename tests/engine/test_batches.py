"""Batched as alone, and one thread as many, on layers large enough for real blocks and real BLAS.

Generated layers are too small for this: a product's bits may depend on its shape only from the size
on at which BLAS changes its kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine
from engine.threads import get_threads
from tests.engine import laws
from tests.engine.compare import assert_same_bytes
from tests.engine.strategies import Layer

CONVS: list[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ("conv", {"padding": 1}, (1, 3, 17, 19), (8, 3, 3, 3)),
    ("conv", {"padding": 1}, (1, 16, 7, 7), (33, 16, 3, 3)),
    ("conv", {"padding": 1, "activation": "gelu"}, (1, 64, 9, 9), (64, 64, 3, 3)),
    ("conv", {}, (1, 129, 5, 5), (67, 129, 1, 1)),
    ("conv", {}, (1, 64, 1, 1), (10, 64, 1, 1)),
    ("conv", {}, (1, 16, 7, 7), (10, 16, 7, 7)),
    ("conv", {"stride": 2, "padding": 3, "layout": "NHWC"}, (1, 31, 33, 3), (7, 7, 3, 16)),
    ("conv", {"groups": 48, "padding": 1}, (1, 48, 60, 60), (48, 1, 3, 3)),
    ("conv", {"groups": 4, "padding": 1}, (1, 32, 13, 13), (64, 8, 3, 3)),
    ("conv", {"padding": "same", "algorithm": "fastest"}, (1, 64, 32, 32), (64, 64, 3, 3)),
    ("conv", {"padding": "same", "algorithm": "fastest"}, (1, 8, 24, 24), (8, 8, 9, 9)),
    ("conv", {"padding": "causal", "dilation": 4}, (1, 20, 301), (20, 20, 5)),
    ("conv", {"padding": 1}, (1, 6, 9, 10, 11), (12, 6, 3, 3, 3)),
    ("conv", {"padding": 1, "layout": "NHWC"}, (1, 56, 56, 64), (3, 3, 64, 64)),
    ("conv", {"padding": 1}, (1, 256, 7, 7), (128, 256, 3, 3)),
    ("conv", {"padding": 1}, (1, 16, 9, 20, 31), (32, 16, 3, 3, 3)),
    ("conv", {"layout": "NHWC"}, (1, 28, 28, 256), (1, 1, 256, 64)),
    ("conv", {"stride": 2, "padding": [[20, 20], [5, 5]]}, (1, 1, 61, 300), (32, 1, 41, 11)),
    ("conv_transpose", {"stride": 2, "padding": 1}, (1, 33, 11, 11), (33, 16, 4, 4)),
    ("conv_transpose", {"stride": 2, "padding": 1}, (1, 256, 4, 4), (256, 40, 4, 4)),
    ("conv_transpose", {"stride": 2, "groups": 3}, (1, 12, 40), (12, 5, 5)),
    ("conv_transpose", {"stride": 16, "padding": 8}, (1, 21, 6, 7), (21, 5, 32, 32)),
    ("conv_transpose", {"activation": "tanh", "layout": "NHWC"}, (1, 28, 28, 16), (3, 3, 16, 24)),
]
POOLS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("max_pool", {"kernel": 3, "stride": 2, "padding": 1}, (1, 48, 57, 57)),
    ("max_pool", {"kernel": 2, "layout": "NHWC"}, (1, 57, 57, 48)),
    ("avg_pool", {"kernel": 3, "stride": 1, "padding": 1}, (1, 48, 57, 57)),
    ("avg_pool", {"kernel": 31, "stride": 1}, (1, 8, 64, 64)),
    ("lp_pool", {"kernel": 3, "p": 3.0}, (1, 48, 57, 57)),
    ("adaptive_avg_pool", {"output_size": 1}, (1, 512, 14, 14)),
    ("adaptive_avg_pool", {"output_size": 7, "layout": "NHWC"}, (1, 33, 33, 70)),
    ("adaptive_avg_pool", {"output_size": 6}, (1, 512, 16, 16)),
    ("adaptive_max_pool", {"output_size": 5}, (1, 48, 57, 57)),
    ("adaptive_max_pool", {"output_size": 6, "layout": "NHWC"}, (1, 16, 16, 512)),
    ("activation", {"name": "gelu"}, (1, 48, 57, 57)),
]
LARGE = [Layer(op, config, {"x": x, "weight": w}, 1) for op, config, x, w in CONVS]
LARGE += [Layer(op, config, {"x": x}, 1) for op, config, x in POOLS]
EACH = pytest.mark.parametrize(
    "layer", LARGE, ids=[f"{place}-{layer.operation}" for place, layer in enumerate(LARGE)]
)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = get_threads()
    yield
    engine.set_threads(before)


@EACH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batched_as_alone(layer: Layer, dtype: str) -> None:
    laws.batched_as_alone(layer, [1, 3, 0, 2, 1], dtype)
    laws.batched_as_alone(layer, [1] * 7, dtype)


@pytest.mark.usefixtures("shared")
@EACH
def test_threads_change_no_bit(layer: Layer) -> None:
    several = Layer(**(vars(layer) | {"shapes": layer.shapes | {"x": (3, *layer.shapes["x"][1:])}}))
    laws.same_under_threads(several, [1, 2, 5])


@EACH
def test_a_sample_s_bits_are_its_own(layer: Layer) -> None:
    """One request of many samples has, sample by sample, the bytes of each alone."""
    tensors = laws.forward_tensors(layer, 0, 5, "float32")
    together = engine.forward(layer.operation, layer.config, **tensors)["y"]
    for n in range(5):
        one = tensors | {"x": tensors["x"][n : n + 1]}
        alone = engine.forward(layer.operation, layer.config, **one)["y"]
        assert alone.tobytes() == together[n : n + 1].tobytes(), f"sample {n}"


def shifted(a: np.ndarray) -> np.ndarray:
    """The same numbers one element off any larger alignment."""
    room = np.empty(a.size + 1, a.dtype)[1:].reshape(a.shape)
    room[...] = a
    return room


@EACH
def test_where_tensors_lie_in_memory_changes_no_bit(layer: Layer) -> None:
    for action, tensors in laws.ACTIONS:
        request = tensors(layer, 0, 2, "float32")
        want = laws.alone(action, layer.operation, layer.config, request)
        for moved in (shifted, np.asfortranarray):
            elsewhere = {name: moved(a) for name, a in request.items()}
            got = laws.alone(action, layer.operation, layer.config, elsewhere)
            assert_same_bytes(got, want, f"{action} of {layer}")


def between(a: np.ndarray) -> np.ndarray:
    """The same numbers one byte off their addresses, as in a message."""
    room = np.ndarray(a.shape, a.dtype, np.empty(a.nbytes + 1, np.uint8), 1)
    room[...] = a
    return room


@pytest.mark.parametrize(
    ("config", "x", "weight", "dtype"),
    [
        ({"padding": 1}, (1, 1, 39), (15, 1, 5), "float64"),
        ({"groups": 12, "stride": [4, 2]}, (1, 12, 8, 3), (780, 1, 1, 3), "float32"),
    ],
)
def test_numbers_between_their_addresses_have_the_same_bits(
    config: dict[str, Any], x: tuple[int, ...], weight: tuple[int, ...], dtype: str
) -> None:
    layer = Layer("conv", config, {"x": x, "weight": weight}, 1)
    request = laws.backward_tensors(layer, 0, 1, dtype)
    elsewhere = {name: between(a) for name, a in request.items()}
    want = engine.backward("conv", config, None, **request)
    assert_same_bytes(engine.backward("conv", config, None, **elsewhere), want, str(layer))


@pytest.mark.parametrize("config", [{"name": "silu"}, {"name": "softplus"}, {"name": "gelu"}])
@pytest.mark.parametrize("action", ["forward", "backward"])
def test_a_nan_has_the_same_bits_wherever_it_stands(config: dict[str, str], action: str) -> None:
    x = np.zeros((7, 1, 5), np.float32)
    x.view(np.uint32)[:, 0, 2] = 0x7FC00000 + 0x80000000 * (np.arange(7) % 2) + np.arange(7)
    tensors = {"x": x} if action == "forward" else {"x": x, "dy": np.ones_like(x)}
    (whole,) = laws.alone(action, "activation", config, tensors).values()
    bits = {int(value) for value in whole.view(np.uint32)[np.isnan(whole)]}
    assert np.isnan(whole).any()
    assert len(bits) == 1
    for row in range(7):
        own = {name: a[row : row + 1] for name, a in tensors.items()}
        (alone,) = laws.alone(action, "activation", config, own).values()
        assert alone.tobytes() == whole[row : row + 1].tobytes()


def test_every_block_of_a_large_result_has_its_nans_settled() -> None:
    x = np.zeros((1, 3, 300_000), np.float32)
    x.view(np.uint32)[0, :, ::299_999] = 0xFFC00001
    y = engine.forward("activation", {"name": "identity"}, x=x)["y"].view(np.uint32)
    assert set(y[0, :, ::299_999].ravel().tolist()) == {0x7FC00000}
