"""Tiles and blocks of Winograd's filtering: transforms that filter, and outputs that are met once."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.kernels.winograd.tiling import TAPS, WIDTH, tilings, transforms


@pytest.mark.parametrize("m", [2, 4])
def test_the_transforms_filter(m: int) -> None:
    output, filters, inputs = transforms(m)
    g, d = np.random.default_rng(1).standard_normal((2, m + TAPS - 1))
    g = g[:TAPS]
    got = output @ ((filters @ g) * (inputs @ d))
    np.testing.assert_allclose(got, np.correlate(d, g, "valid"), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(64, 64, 56, 56), (128, 128, 28, 28), (32, 16, 9, 20, 31)])
def test_blocks_cover_every_output_once(shape: tuple[int, ...]) -> None:
    outputs, channels, *size = shape
    plan = engine.plan(
        "conv",
        {"padding": 1, "algorithm": "winograd"},
        {"x": (1, channels, *size), "weight": (outputs, channels, *(TAPS,) * len(size))},
    )
    found = tilings(plan.plan.geometry.correlation)[0]
    assert len(found.blocks) > 1
    steps = (1, found.down * found.height, found.across * WIDTH)
    seen = np.zeros([1, *size][-3:], int)
    for block in found.blocks:
        seen[tuple(slice(lo * n, hi * n) for (lo, hi), n in zip(block, steps, strict=True))] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("channels", "size", "least"),
    [(64, 56, 28), (512, 28, 19), (512, 56, 16), (512, 60, 18), (640, 32, 12)],
)
def test_products_have_as_many_tiles_as_the_scratch_has_room_for(
    channels: int, size: int, least: int
) -> None:
    plan = engine.plan(
        "conv",
        {"padding": 1, "algorithm": "winograd"},
        {"x": (1, channels, size, size), "weight": (channels, channels, TAPS, TAPS)},
    )
    found = tilings(plan.plan.geometry.correlation)[-1]
    tiles = -(-size // found.height) * -(-size // WIDTH)
    assert found.fits
    assert tiles / found.products >= least


def test_a_map_of_more_channels_than_a_tile_has_room_for_does_not_fit() -> None:
    plan = engine.plan(
        "conv",
        {"padding": 1, "algorithm": "winograd"},
        {"x": (1, 20_000, 8, 8), "weight": (1, 20_000, TAPS, TAPS)},
    )
    assert not tilings(plan.plan.geometry.correlation)[0].fits
    assert plan.report()["algorithm"] == "direct"
