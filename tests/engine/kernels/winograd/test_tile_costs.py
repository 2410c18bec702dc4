"""Which layers are worth Winograd's tiles."""

from __future__ import annotations

import pytest

import engine
from engine.kernels.correlation import Correlation
from engine.kernels.winograd import tile_costs


def layer(channels: int, outputs: int, *size: int, wanted: str = "auto") -> Correlation:
    shapes = {"x": (1, channels, *size), "weight": (outputs, channels, *(3,) * len(size))}
    planned = engine.plan("conv", {"padding": 1, "algorithm": wanted}, shapes)
    found: Correlation = planned.plan.geometry.correlation
    return found


LARGE = [
    layer(64, 64, 224, 224),
    layer(64, 64, 56, 56),
    layer(128, 128, 28, 28),
    layer(256, 256, 28, 28),
    layer(512, 512, 28, 28),
    layer(640, 640, 32, 32),
    layer(16, 32, 16, 56, 56),
]

OTHERS = [
    layer(32, 32, 14, 14),
    layer(64, 64, 28, 28),
    layer(512, 512, 14, 14),
    layer(128, 1280, 22, 50),
    layer(3, 64, 224, 224),
    layer(16, 16, 4, 8, 8),
]
"""Few channels, small maps, many filters, products of few tiles."""


@pytest.fixture(autouse=True, params=["COPYING", "IN_PLACE"])
def costs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What parts take with either kind of BLAS."""
    monkeypatch.setattr(tile_costs, "COSTS", getattr(tile_costs, request.param))


@pytest.mark.parametrize("c", [*LARGE, *OTHERS], ids=lambda c: f"{c.channels} on {c.positions}")
def test_tiles_pay_for_large_layers_alone(c: Correlation) -> None:
    assert tile_costs.pay(c) == (c in LARGE)


def test_filters_that_single_samples_would_wait_for_pay_where_products_need_no_copies() -> None:
    in_place = tile_costs.COSTS is tile_costs.IN_PLACE
    assert tile_costs.pay(layer(256, 256, 14, 14)) is in_place


def test_tiles_pay_sooner_where_numbers_are_not_looked_at() -> None:
    size = (64, 64, 28, 28)
    assert tile_costs.pay(layer(*size, wanted="fastest"))
    assert not tile_costs.pay(layer(*size))
