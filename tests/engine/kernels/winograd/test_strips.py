"""Winograd's views of the scratch: that they lie in it, and that blocks of one shape share them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import engine
from engine import arena
from engine.arena import PART_BYTES
from engine.kernels.winograd import strips
from engine.kernels.winograd.tiling import Tiling, tilings

LAYERS = [
    ((64, 64), (56, 56)),
    ((128, 32), (28, 29)),
    ((256, 512), (14, 14)),
    ((64, 64), (224, 224)),
    ((33, 48), (7, 61)),
    ((16, 32), (16, 56, 56)),
    ((128, 128), (5, 17, 40)),
    ((3, 5), (3, 900)),
]


def plan_of(channels: tuple[int, int], size: tuple[int, ...]) -> Tiling:
    shapes = {"x": (1, channels[0], *size), "weight": (channels[1], channels[0], *(3,) * len(size))}
    planned = engine.plan("conv", {"padding": 1, "algorithm": "winograd"}, shapes)
    assert planned.report()["algorithm"] == "winograd"
    return tilings(planned.plan.geometry.correlation)[0]


@pytest.mark.parametrize(("channels", "size"), LAYERS)
def test_views_lie_in_the_scratch(channels: tuple[int, int], size: tuple[int, ...]) -> None:
    parts = [arena.part(number, (PART_BYTES,), np.dtype(np.uint8)) for number in range(3)]
    for cut in strips.cuts(plan_of(channels, size)):
        v = strips.views(cut.shape)
        arrays = [getattr(v, f.name) for f in fields(v) if f.name not in ("shape", "into")]
        made = [a for a in arrays if isinstance(a, np.ndarray)]
        made += [v.lines.padded, v.lines.inner, v.lines.together]
        made += [out for _, _, out in (*v.into, *v.back, *v.last)]
        assert len(made) > 10
        for array in made:
            assert any(np.may_share_memory(array, part) for part in parts)


@pytest.mark.parametrize(("channels", "size"), LAYERS)
def test_blocks_share_a_few_shapes(channels: tuple[int, int], size: tuple[int, ...]) -> None:
    cuts = strips.cuts(plan_of(channels, size))
    assert len({id(cut.shape) for cut in cuts}) == len({cut.shape for cut in cuts}) <= 27
