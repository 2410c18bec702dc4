"""Offered blocks come between others and use the same scratch: nothing that is needed may be there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
from engine import arena, threads
from engine.offers import Offers

pytestmark = pytest.mark.usefixtures("as_large", "shared", "overwriting")


class Overwriting(Offers):
    """Something is always pressing, and leaves nothing of this thread's scratch as it was."""

    times = 0

    def serve_pressing(self) -> None:
        arena.scratch(arena.PART_BYTES // 4, np.dtype(np.uint32))  # so that there is one
        assert arena._local.scratch is not None
        arena._local.scratch.view(np.uint32)[:] = 0x7F123456  # 1.9e38
        Overwriting.times += 1


@pytest.fixture
def overwriting(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(threads, "Offers", Overwriting)


LAYERS: list[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ("conv", {"padding": 1}, (2, 64, 20, 20), (64, 64, 3, 3)),
    ("conv", {"padding": 1}, (1, 64, 14, 14), (64, 64, 3, 3)),
    ("conv", {"padding": 1, "algorithm": "fastest"}, (1, 32, 14, 14), (32, 32, 3, 3)),
    ("conv", {"padding": 1, "algorithm": "direct"}, (2, 64, 20, 20), (64, 64, 3, 3)),
    ("conv", {"padding": 1, "padding_mode": "reflect"}, (2, 64, 20, 20), (64, 64, 3, 3)),
    (
        "conv",
        {"padding": 1, "layout": "NHWC", "weight_layout": "OIHW"},
        (2, 20, 20, 64),
        (64, 64, 3, 3),
    ),
    (
        "conv",
        {"padding": 1, "layout": "NHWC", "weight_layout": "HWIO"},
        (2, 20, 20, 64),
        (3, 3, 64, 64),
    ),
    ("conv", {"padding": 1}, (2, 16, 6, 20, 20), (16, 16, 3, 3, 3)),
    ("conv", {"padding": 1, "stride": 2}, (2, 32, 20, 20), (64, 32, 3, 3)),
    ("conv", {"padding": 1, "groups": 64}, (2, 64, 30, 30), (64, 1, 3, 3)),
    ("conv", {"padding": 1, "groups": 8}, (2, 32, 40, 40), (32, 4, 3, 3)),
    ("conv", {"padding": 2}, (8, 6, 14, 14), (16, 6, 5, 5)),
    ("conv", {}, (4, 64, 20, 20), (128, 64, 1, 1)),
    ("conv", {"padding": 3, "stride": 2}, (2, 3, 64, 64), (64, 3, 7, 7)),
    ("conv", {"padding": 1}, (8, 256, 7, 7), (256, 256, 3, 3)),
    ("conv", {}, (8, 64, 7, 7), (32, 64, 7, 7)),
    ("conv_transpose", {"stride": 2, "padding": 1}, (4, 64, 8, 8), (64, 32, 4, 4)),
    ("conv_transpose", {"stride": 2}, (4, 32, 20, 20), (32, 16, 2, 2)),
    ("conv_transpose", {"padding": 1}, (2, 64, 20, 20), (64, 64, 3, 3)),
]


@pytest.mark.parametrize(("operation", "config", "x", "weight"), LAYERS)
def test_nothing_in_the_scratch_is_needed_between_blocks(
    operation: str,
    config: dict[str, Any],
    x: tuple[int, ...],
    weight: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal(x).astype("f4")}
    given["weight"] = rng.standard_normal(weight).astype("f4")
    y = engine.forward(operation, config, **given)["y"]
    given["dy"] = rng.standard_normal(y.shape).astype("f4")
    threads.set_threads(1)
    expected = engine.backward(operation, config, None, **given)
    threads.set_threads(2)
    before = Overwriting.times
    for _ in range(3):
        for name, array in engine.backward(operation, config, None, **given).items():
            np.testing.assert_array_equal(array, expected[name])
    assert Overwriting.times > before
