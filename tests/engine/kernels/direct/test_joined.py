"""Samples that share products: their values, and that they share no bit with each other."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import engine
from engine.kernels.direct import joined
from engine.kernels.dispatch import forward_algorithm, plain_kernel
from engine.threads import computing, get_threads

pytestmark = pytest.mark.usefixtures("may_share")

LAYERS: list[tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
    ({"padding": 1}, (256, 7, 7), (256, 256, 3, 3)),
    ({"padding": [[2, 0], [0, 1]], "dilation": [1, 2]}, (200, 8, 9), (301, 200, 2, 4)),
    ({"stride": 2, "padding": 1}, (256, 14, 13), (260, 256, 4, 3)),
    ({"padding": 1, "layout": "NHWC"}, (7, 7, 256), (3, 3, 256, 256)),
    ({"padding": 1, "activation": "relu"}, (150, 3, 3, 4), (150, 150, 3, 3, 3)),
    ({"padding": 4}, (400, 30), (200, 400, 9)),
]
EACH = pytest.mark.parametrize(("config", "size", "taps"), LAYERS)


def tensors(samples: int, size: tuple[int, ...], taps: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(samples)
    outputs = taps[-1] if size[-1] == taps[-2] else taps[0]
    shapes = {"x": (samples, *size), "weight": taps, "bias": (outputs,)}
    return {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}


def plan(config: dict[str, Any], given: dict[str, np.ndarray]) -> Any:
    return engine.plan("conv", config, {name: a.shape for name, a in given.items()})


@EACH
def test_values(config: dict[str, Any], size: tuple[int, ...], taps: tuple[int, ...]) -> None:
    given = tensors(5, size, taps)
    c = plan(config, given).plan.geometry.correlation
    assert plain_kernel(c) == "joined"
    assert forward_algorithm(c) == "direct"
    wide = {name: a.astype("f8") for name, a in given.items()}
    got, want = (engine.forward("conv", config, **each)["y"] for each in (given, wide))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
    dy = np.random.default_rng(9).standard_normal(want.shape)
    for name in ("dx", "dweight"):
        got = engine.backward("conv", config, [name], **given, dy=dy.astype("f4"))[name]
        want = engine.backward("conv", config, [name], **wide, dy=dy)[name]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-3)


@pytest.mark.usefixtures("shared")
@EACH
def test_the_same_bits_with_any_neighbours_on_any_threads(
    config: dict[str, Any],
    size: tuple[int, ...],
    taps: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, before = tensors(9, size, taps), get_threads()
    x = given.pop("x")
    alone = [engine.forward("conv", config, x=x[n : n + 1], **given)["y"] for n in range(9)]
    try:
        for threads in (1, 2, 3):
            engine.set_threads(threads)
            for samples in range(1, 10):
                y = engine.forward("conv", config, x=x[:samples], **given)["y"]
                for n in range(samples):
                    assert y[n : n + 1].tobytes() == alone[n].tobytes(), f"{n} of {samples}"
        # Where this BLAS did not agree with itself, the results would be the same.
        monkeypatch.setattr(joined, "agree", lambda _: False)
        apart = engine.forward("conv", config, x=x, **given)["y"]
    finally:
        engine.set_threads(before)
    assert apart.tobytes() == np.concatenate(alone).tobytes()


def test_a_bad_sample_spoils_no_other() -> None:
    config, size, taps = LAYERS[0]
    given = tensors(6, size, taps)
    want = engine.forward("conv", config, **given)["y"]
    given["x"][2] = np.nan
    given["x"][4] = np.inf
    got = engine.forward("conv", config, **given)["y"]
    for n in (0, 1, 3, 5):
        assert got[n].tobytes() == want[n].tobytes()


def test_products_that_depend_on_their_width_are_not_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not every BLAS agrees with itself, but sums one after another do.
    def even(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.add.reduce(left[:, :, None] * right, axis=1)

    def uneven(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        found = even(left, right)
        if right.shape[1] == 3 * 7:
            found[0, -1] = np.nextafter(found[0, -1], np.float32(9))
        return found

    monkeypatch.setattr(np, "matmul", even)
    assert joined.same_bits.__wrapped__(8, 60, 7)
    monkeypatch.setattr(np, "matmul", uneven)
    assert not joined.same_bits.__wrapped__(8, 60, 7)


def test_products_are_not_compared_where_they_are_known_to_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, ...]] = []

    def compared(*sizes: int) -> bool:
        asked.append(sizes)
        return True

    monkeypatch.setattr(joined, "same_bits", compared)
    monkeypatch.setattr(joined, "UNLIKE", False)
    assert joined.agree([(8, 60, 7), (9, 60, 7, True)])
    assert asked == [(8, 60, 7), (9, 60, 7, True)]
    monkeypatch.setattr(joined, "UNLIKE", True)
    assert not joined.agree([(8, 60, 7)])
    assert len(asked) == 2


def test_samples_are_gathered_alone_where_products_are_known_to_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, size, taps = LAYERS[0]
    c = plan(config, tensors(1, size, taps)).plan.geometry.correlation
    assert joined.suits.__wrapped__(c)
    monkeypatch.setattr(joined, "UNLIKE", True)
    assert not joined.suits.__wrapped__(c)


def test_comparing_products_stops_when_asked_and_starts_again() -> None:
    polled: list[bool] = []

    def stop() -> bool:
        polled.append(len(polled) == 1)
        return polled[-1]

    joined.same_bits.cache_clear()
    with pytest.raises(engine.Stopped):
        computing(stop, joined.same_bits, 64, 600, 49)
    assert len(polled) == 2
    assert joined.same_bits.cache_info().currsize == 0
    assert joined.same_bits(64, 600, 49) == joined.same_bits.__wrapped__(64, 600, 49)


def test_memory_is_what_the_plan_says() -> None:
    config, size, taps = LAYERS[0]
    given, before = tensors(9, size, taps), get_threads()
    workspace = plan(config, given).report()["bytes"]["workspace"]
    joined.same_bits.cache_clear()
    tracemalloc.start()
    try:
        engine.set_threads(1)
        start = tracemalloc.get_traced_memory()[0]
        y = engine.forward("conv", config, **given)["y"]
        peak = tracemalloc.get_traced_memory()[1] - start - y.nbytes
    finally:
        tracemalloc.stop()
        engine.set_threads(before)
    assert peak <= workspace
