"""Dot products of planes against gathered patches: values, blocks, requests and bad numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine import arena
from engine.arena import PART_BYTES
from engine.kernels.depthwise import planes
from engine.kernels.direct import patch_sums
from tests.engine.kernels.images import IMAGES, Pair, Shape, image, tensors


@pytest.fixture(params=[2 << 20, 1 << 10], ids=["whole", "cut"])
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(planes, "PART_BYTES", request.param)
    planes.blocks.cache_clear()
    yield
    planes.blocks.cache_clear()


@pytest.mark.parametrize("shape", IMAGES)
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
@pytest.mark.usefixtures("_parts")
def test_values(shape: Shape, bad: float | None) -> None:
    c = image(**shape)
    x, _, _, dy = tensors(c)
    if bad is not None:
        x[0, 3, 0, -1, -1] = dy[2, 5, 0, 0, 0] = bad
    got, want = np.full((2, 3, c.groups, 1, 1, *c.kernel), np.nan)
    with np.errstate(invalid="ignore"):
        planes.backward_weight(c, x, dy, (2, 0, 1), got)
        patch_sums.backward_weight(c, x, dy, (2, 0, 1), want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_a_row_larger_than_the_scratch_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    c = image((9, 9), (3, 3), (1, 1))
    assert planes.suits(c)
    monkeypatch.setattr(planes, "PART_BYTES", 1 << 7)
    assert not planes.suits(c)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_whoever_comes_along(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planes, "get_threads", lambda: threads)
    c = image((30, 30), (7, 7), (3, 3), itemsize=4)
    x, _, _, dy = tensors(c, 4)
    together = np.zeros((2, c.groups, 1, 1, *c.kernel), np.float32)
    planes.backward_weight(c, x, dy, (1, 3), together)
    single = np.zeros_like(together[:1])
    planes.backward_weight(c, x[1:], dy[1:], (3,), single)
    assert single.tobytes() == together[1:].tobytes()


@pytest.mark.parametrize("size", [(12, 12), (56, 56), (3000, 3)])
def test_the_same_bits_however_many_samples_a_call_has(
    size: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = image(size, (3, 3), (1, 1), itemsize=4, groups=24)
    assert 1 < planes.blocks(c)[2] <= planes.FREE
    x, _, _, dy = tensors(c, 5)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(planes, "get_threads", lambda threads=threads: threads)
        dw = np.zeros((2, c.groups, 1, 1, *c.kernel), np.float32)
        planes.backward_weight(c, x, dy, (4, 1), dw)
        found.append(dw.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("shape", IMAGES)
def test_views_lie_in_the_scratch(shape: Shape) -> None:
    parts = [arena.part(number, (PART_BYTES,), np.dtype(np.uint8)) for number in range(3)]
    c = image(**shape)
    key = (c, 3, 0, c.positions[0], 2, True)
    v = planes.views(*key)
    made = [v.slab, v.outputs, v.between, v.partial, *(copy.target for _, copy in v.copies)]
    made += [array for product in v.products for array in product]
    for array in made:
        assert not array.size or any(np.may_share_memory(array, part) for part in parts)
    assert planes.views(*key) is v
