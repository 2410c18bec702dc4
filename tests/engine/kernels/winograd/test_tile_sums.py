"""Views of the scratch for a filter's gradient by tiles: that they lie in it, and what else is not kept."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest

from engine import arena
from engine.arena import SCRATCH_BYTES, Arena
from engine.kernels.winograd import pieces, tile_sums
from engine.kernels.winograd.tile_sums import Views
from tests.engine.kernels.winograd.test_pieces import LAYERS, layer


def arrays(v: Views) -> list[np.ndarray]:
    operands = (v.inputs, v.upstream, v.inputs.lines, v.upstream.lines)
    both = [getattr(part, f.name) for part in operands for f in fields(part)]
    made = [a for a in (*both, v.total, v.made, v.filters) if isinstance(a, np.ndarray)]
    return [*made, *(out for part in (v.inputs, v.upstream) for _, _, out in part.steps), v.back[2]]


@pytest.mark.parametrize("most", [64, 128])
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize(("channels", "outputs", "size", "padding", "samples"), LAYERS)
def test_views_lie_in_the_scratch(
    channels: int,
    outputs: int,
    size: tuple[int, ...],
    padding: int,
    samples: int,
    itemsize: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pieces, "MOST", most)
    c = replace(layer(channels, outputs, size, padding), itemsize=itemsize)
    plan = pieces.Cut(c)
    monkeypatch.setattr(pieces, "cut", lambda _: plan)
    scratch = Arena().take((SCRATCH_BYTES,), np.dtype(np.uint8))
    found = pieces.pieces.__wrapped__(c, samples)
    sizes = {(i[1] - i[0], o[1] - o[0]) for i, o in product(plan.channels, plan.outputs)}
    for piece, (inputs, upstream) in product(found, sizes):
        v = tile_sums.views(piece.shape, inputs, upstream, f"<f{itemsize}")
        assert v is tile_sums.views(piece.shape, inputs, upstream, f"<f{itemsize}")
        assert all(np.may_share_memory(array, scratch) for array in arrays(v))


def test_views_that_do_not_fit_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    piece = pieces.pieces(layer(*LAYERS[0][:4]), 1)[0]
    monkeypatch.setattr(arena, "SCRATCH_BYTES", 1 << 20)
    tile_sums.views.cache_clear()
    v, again = (tile_sums.views(piece.shape, 64, 64, "<f4") for _ in range(2))
    tile_sums.views.cache_clear()
    assert v is not again
    assert np.may_share_memory(v.total, again.total)
    scratch = Arena().take((1 << 20,), np.dtype(np.uint8))
    assert not all(np.may_share_memory(array, scratch) for array in arrays(v))
