"""The generated layers again with blocks of a few numbers, so that every seam between blocks shows.

Real blocks hold a small layer whole. Here tiles, channel chunks and sample groups are cut as finely
as they go, long windows begin at three taps, and the threads share every block.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from engine import arena, resolve, threads
from engine.kernels import correlation, dispatch, products, turning, weight_bytes
from engine.kernels.activations import table
from engine.kernels.depthwise import banding, bands, stuffed
from engine.kernels.direct import (
    adjoints,
    channels_last,
    flat,
    folding,
    folds,
    gathered,
    interleaving,
    patch_sums,
    scattered,
    shifting,
    shifts,
    single,
)
from engine.kernels.pools import fitting, pooling, reducing, seeking, tracing, windows
from engine.operations import max_unpool
from tests.engine import laws
from tests.engine.compare import assert_close
from tests.engine.conftest import SMALLEST
from tests.engine.strategies import LAYERS

SETTINGS = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=[128, 1024], ids=["128 bytes", "1024 bytes"], autouse=True)
def _small_blocks(request: pytest.FixtureRequest, shared: None) -> Iterator[None]:  # noqa: ARG001
    part: int = request.param
    before = threads.get_threads()
    # What is loaded only later would keep the small sizes.
    engine.operations()
    with pytest.MonkeyPatch.context() as patch:
        for module in (
            arena,
            banding,
            channels_last,
            correlation,
            folds,
            interleaving,
            patch_sums,
            scattered,
            shifting,
            shifts,
            stuffed,
        ):
            patch.setattr(module, "PART_BYTES", part)
        for module in (turning, pooling, max_unpool, table):
            patch.setattr(module, "BLOCK", part // 16)
        for module, bound in SMALLEST:
            patch.setattr(module, bound, 0)
        patch.setattr(turning, "ROWS_BYTES", part)
        patch.setattr(turning, "STREWN", 0)
        patch.setattr(turning, "MANY", 0)
        patch.setattr(banding, "WHOLE_COLUMNS", 8)
        patch.setattr(banding, "LEAST_COLUMNS", 2)
        patch.setattr(fitting, "ROOM", part)
        patch.setattr(pooling, "LEAST_RUN", 2)
        patch.setattr(windows, "LONG_TAPS", 2)
        patch.setattr(windows, "BUSY", 0)
        patch.setattr(reducing, "BESIDE", 0)
        patch.setattr(reducing, "FEWER", 0)
        patch.setattr(reducing, "LONG_STEP", 2)
        patch.setattr(seeking, "WORTH", 0 if part == 128 else seeking.WORTH)
        patch.setattr(seeking, "BESIDE_RUN", 2)
        for bound, value in (("ROWS", 8), ("WHOLE", 8), ("WIDTH", 2), ("OUTER", 8)):
            patch.setattr(single, bound, value)
        patch.setattr(interleaving, "BAND_BYTES", part)
        patch.setattr(scattered, "LEAST_WEIGHTS", 0)
        patch.setattr(scattered, "LEAST_CHANNELS", 0)
        patch.setattr(scattered, "FEWER", 1)
        # Flat planes would take most of these layers from the kernels that are cut here.
        patch.setattr(flat, "MOST_COLUMNS", 0)
        # Products whole, as where BLAS copies all operands, and cut, as where it does not.
        patch.setattr(products, "UNPACKED", 0 if part == 128 else 1 << 10)
        engine.set_threads(3)
        _forget()
        yield
    engine.set_threads(before)
    _forget()


def _forget() -> None:
    for cached in (
        resolve._prepared,
        adjoints._kept,
        adjoints.scattering,
        adjoints._folds,
        adjoints._gathers,
        adjoints._scatters,
        adjoints._summed,
        banding.banding,
        banding._columns,
        banding._part,
        bands.views,
        gathered._block,
        gathered._windows,
        channels_last._samples,
        channels_last.views,
        dispatch.tiled,
        dispatch.plain_kernel,
        dispatch.goes_tap_by_tap,
        dispatch.adjoint_goes_tap_by_tap,
        weight_bytes.forward_bytes,
        weight_bytes.rearranged_bytes,
        dispatch._forward,
        dispatch.input_kernel,
        dispatch._weight,
        dispatch.plain_weight,
        flat.suits,
        interleaving.suits,
        interleaving.band,
        interleaving.shares,
        folds.plan,
        folding._views,
        products.pieces,
        products.shares,
        products.tall,
        products.widest,
        scattered._cut,
        scattered._products,
        shifting.plan,
        shifting.cuts,
        shifts._views,
        stuffed.plan,
        tracing.suits,
    ):
        cached.cache_clear()


@pytest.mark.parametrize("operation", sorted(LAYERS))
@SETTINGS
@given(data=st.data())
def test_matches_the_reference(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    forward, gradients = layer.expected()
    tensors = layer.given()
    got = engine.forward(operation, layer.config, **tensors)
    assert_close(got, forward, about=layer)
    assert_close(laws.backward(layer, tensors, layer.dy(got["y"])), gradients, about=layer)


@pytest.mark.parametrize("operation", sorted(LAYERS))
@SETTINGS
@given(data=st.data(), rows=st.lists(st.integers(0, 3), min_size=2, max_size=4))
def test_batched_as_alone(operation: str, rows: list[int], data: st.DataObject) -> None:
    laws.batched_as_alone(data.draw(LAYERS[operation]), rows)
