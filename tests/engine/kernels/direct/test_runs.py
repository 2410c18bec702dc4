"""Views of the scratch for small maps: what they hold, that they fit, and that few are kept."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from engine import arena
from engine.arena import PART_BYTES
from engine.kernels.direct import runs
from tests.engine.kernels.direct.test_flat import LAYERS, Case, layer
from tests.engine.kernels.images import tensors


@pytest.mark.parametrize("case", LAYERS)
def test_columns_are_the_windows_of_all_outputs(case: Case) -> None:
    c = layer(case)
    x = tensors(c, 2)[0]
    views = runs.columns(c, 2)
    views.load(x)
    padded = np.pad(x, [(0, 0)] * 3 + [(a.low, a.high) for a in c.axes])
    for tap in np.ndindex(*c.kernel):
        places: tuple[Any, ...] = tuple(
            slice(t * a.dilation, t * a.dilation + a.out) for t, a in zip(tap, c.axes, strict=True)
        )
        found = views.columns[(slice(None),) * 3 + tap]
        np.testing.assert_array_equal(found, padded[(..., *places)])


@pytest.mark.parametrize("case", LAYERS)
@pytest.mark.parametrize("views", [runs.columns, runs.spread])
def test_views_of_as_many_samples_as_are_planned_lie_in_the_scratch(
    case: Case, views: object
) -> None:
    c = layer(case)
    plan = runs.flat(c)
    assert plan.samples <= plan.most
    made = views(c, plan.most if views is runs.columns else plan.spread)  # type: ignore[operator]
    arrays = [getattr(made, field.name) for field in fields(made) if field.name != "copies"]
    for array in (*arrays, *(a for pair in getattr(made, "copies", ()) for a in pair)):
        lo, hi = np.lib.array_utils.byte_bounds(array)
        assert hi - lo <= PART_BYTES
        assert any(np.may_share_memory(array, part) for part in _parts())


def _parts() -> list[np.ndarray]:
    return [arena.part(number, (PART_BYTES,), np.dtype(np.uint8)) for number in range(3)]
