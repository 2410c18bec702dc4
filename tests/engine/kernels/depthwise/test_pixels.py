"""Sums over pixels against gathered patches: values, blocks, runs, requests and bad numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from engine import arena
from engine.arena import PART_BYTES
from engine.kernels.correlation import Correlation
from engine.kernels.depthwise import cuts, pixels
from engine.kernels.direct import gathered, patch_sums
from tests.engine.kernels.images import IMAGES, VOLUMES, Shape, image, tensors


@pytest.fixture(
    params=[(1024, 1 << 20, 4), (20, 1 << 20, 4), (64, 1 << 10, 4), (64, 1 << 20, 1)],
    ids=["whole", "one", "cut", "together"],
)
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    run, block_bytes, shared = request.param
    monkeypatch.setattr(pixels, "TAP_RUN", run)
    monkeypatch.setattr(cuts, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(cuts, "SHARED", shared)
    cuts.cuts.cache_clear()
    yield
    cuts.cuts.cache_clear()


def last(a: np.ndarray) -> np.ndarray:
    """The same numbers (N, G, 1, H, W), with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)


def first(a: np.ndarray) -> np.ndarray:
    """The same numbers with channels first in memory."""
    return a


Order = Callable[[np.ndarray], np.ndarray]
ORDERS = pytest.mark.parametrize("order", [first, last])


def layer(
    shape: Shape, order: Order, itemsize: int = 8, groups: int = 13
) -> tuple[Correlation, list[np.ndarray]]:
    c = image(**shape, itemsize=itemsize, channels_last=order is last, groups=groups)
    x, w, bias, dy = tensors(c)
    return c, [order(x), w, bias, order(dy)]


@pytest.mark.parametrize("shape", IMAGES + VOLUMES)
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.usefixtures("_parts")
@ORDERS
def test_values(shape: Shape, bad: float | None, order: Order) -> None:
    c, (x, w, bias, dy) = layer(shape, order)
    if bad is not None:
        ends = len(c.axes)
        x[1, 3, 0, *(-1,) * ends] = dy[2, 5, 0, *(0,) * ends] = bad
    got, want = order(np.full(dy.shape, np.nan)), np.full(dy.shape, np.nan)
    sums, wanted = np.full((2, 2, 13, 1, 1, *c.kernel), np.nan)
    with np.errstate(invalid="ignore"):
        pixels.forward(c, x, w, bias, got)
        gathered.forward(c, x, w, bias, want)
        pixels.backward_weight(c, x, dy, (1, 2), sums)
        patch_sums.backward_weight(c, x, dy, (1, 2), wanted)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12)


@ORDERS
@pytest.mark.parametrize("itemsize", [4, 8])
def test_values_of_many_channels(itemsize: int, order: Order) -> None:
    """Their numbers would share lines of the cache, so turned results lie further apart."""
    c, (x, w, bias, dy) = layer(IMAGES[0], order, itemsize, groups=256)
    got, want = order(np.zeros(dy.shape, x.dtype)), np.zeros(dy.shape, x.dtype)
    sums, wanted = np.zeros((2, 1, 256, 1, 1, *c.kernel), x.dtype)
    pixels.forward(c, x, w, bias, got)
    gathered.forward(c, x, w, bias, want)
    pixels.backward_weight(c, x, dy, (3,), sums)
    patch_sums.backward_weight(c, x, dy, (3,), wanted)
    close = {4: 1e-4, 8: 1e-12}[itemsize]
    np.testing.assert_allclose(got, want, rtol=close, atol=close)
    np.testing.assert_allclose(sums, wanted, rtol=close, atol=close)


@ORDERS
def test_into_every_second_pixel(order: Order) -> None:
    c, (x, w, _, dy) = layer(IMAGES[0], order)
    spread = order(np.zeros((*dy.shape[:-1], 2 * dy.shape[-1])))
    pixels.forward(c, x, w, None, spread[..., 1::2])
    want = np.zeros_like(dy)
    gathered.forward(c, x, w, None, want)
    np.testing.assert_allclose(spread[..., 1::2], want, rtol=1e-12, atol=1e-12)
    assert not spread[..., ::2].any()


def test_a_row_larger_than_the_scratch_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    c, _ = layer(IMAGES[2], last)
    assert pixels.suits(c)
    monkeypatch.setattr(pixels, "PART_BYTES", 1 << 10)
    assert not pixels.suits(c)


@ORDERS
@pytest.mark.parametrize("shared", [1, 4], ids=["together", "each by itself"])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_the_same_bits_whoever_comes_along(
    order: Order, stride: tuple[int, ...], shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuts, "SHARED", shared)
    shape: Shape = {"size": (30, 31), "kernel": (5, 5), "padding": (2, 2), "stride": stride}
    c, (x, w, _, dy) = layer(shape, order, itemsize=4)
    assert (cuts.together(c, 3) > 1) == (shared == 1)
    whole, alone = order(np.zeros_like(dy)), order(np.zeros_like(dy))
    pixels.forward(c, x, w, None, whole)
    for n in range(3):
        pixels.forward(c, x[n : n + 1], w, None, alone[n : n + 1])
    assert whole.tobytes() == alone.tobytes()
    together = np.zeros((2, 13, 1, 1, 5, 5), np.float32)
    pixels.backward_weight(c, x, dy, (1, 2), together)
    single = np.zeros_like(together[:1])
    pixels.backward_weight(c, x[1:], dy[1:], (2,), single)
    assert single.tobytes() == together[1:].tobytes()


@pytest.mark.parametrize("shape", IMAGES + VOLUMES)
@pytest.mark.parametrize(("each", "samples"), [(1, 1), (2, 1), (2, 2)])
@ORDERS
def test_views_lie_in_the_scratch(shape: Shape, each: int, samples: int, order: Order) -> None:
    parts = [arena.part(number, (PART_BYTES,), np.dtype(np.uint8)) for number in range(3)]
    c, _ = layer(shape, order)
    for cut in cuts.cuts(c):
        key = (c, samples, cut.outputs, cut.stands, each)
        v = pixels.views(*key)
        for array in (
            v.inner,
            *v.padding,
            v.tiled,
            *([] if v.made is None else [v.made]),
            *(a for r in v.runs for a in (r.taps, r.factors)),
        ):
            assert not array.size or any(np.may_share_memory(array, part) for part in parts)
        assert pixels.views(*key) is v


def test_small_planes_share_a_block() -> None:
    c = image((16, 7, 7), (3, 3, 3), (1, 1), itemsize=4, channels_last=True, groups=96)
    (first, *_), rows = zip(*(cut.outputs for cut in cuts.cuts(c)), strict=True)
    assert first > 1
    assert set(rows) == {7}


def test_blocks_inside_an_image_share_their_views() -> None:
    c = image((4000, 60), (3, 3), (1, 1), itemsize=4, channels_last=True, groups=64)
    found = {id(pixels.views(c, 1, cut.outputs, cut.stands, 8)) for cut in cuts.cuts(c)}
    assert len(found) <= 3 < len(cuts.cuts(c))


def test_small_samples_share_a_block_as_long_as_threads_have_several() -> None:
    c = image((8, 8), (3, 3), (1, 1), itemsize=4, channels_last=True, groups=64)
    assert [cuts.together(c, samples) for samples in (1, 7, 16, 1000)] == [1, 1, 4, 5]
    large = image((400, 60), (3, 3), (1, 1), itemsize=4, channels_last=True, groups=64)
    assert cuts.together(large, 1000) == 1
