"""Residues from shared copies: values, bits in any company, bad numbers, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, product
from typing import Any

import numpy as np
import pytest

import engine
from engine.arena import PART_BYTES
from engine.errors import Stopped
from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.direct import gathered, interleaved, interleaving
from engine.threads import computing
from tests.engine.kernels.images import image, summed, tensors
from tests.engine.memory import assert_workspace_holds

LAYERS: dict[str, dict[str, Any]] = {
    "even": {"size": (16, 12), "kernel": (4, 4), "padding": (1, 1), "stride": (2, 2)},
    "odd": {"size": (13, 18), "kernel": (3, 5), "padding": (1, 2), "stride": (2, 3)},
    "apart": {"size": (17, 11), "kernel": (3, 3), "padding": (0, 1), "stride": (4, 2)},
    "down alone": {"size": (15, 9), "kernel": (5, 3), "padding": (2, 2), "stride": (3, 1)},
    "across alone": {"size": (7, 21), "kernel": (1, 4), "padding": (0, 3), "stride": (1, 2)},
    "all padding": {"size": (3, 4), "kernel": (6, 5), "padding": (5, 4), "stride": (2, 2)},
    "one place": {"size": (4, 4), "kernel": (4, 4), "padding": (0, 0), "stride": (3, 2)},
    "one phase of no tap": {"size": (9, 8), "kernel": (2, 2), "padding": (0, 0), "stride": (3, 1)},
    "line": {"size": (41,), "kernel": (7,), "padding": (3, 2), "stride": (3,)},
    "line of one tap each": {"size": (23,), "kernel": (4,), "padding": (0, 1), "stride": (4,)},
    "volume": {"size": (7, 9, 8), "kernel": (4, 3, 5), "padding": (1, 2), "stride": (2, 2, 3)},
    "plane by plane": {
        "size": (3, 10, 9),
        "kernel": (1, 4, 3),
        "padding": (0, 1),
        "stride": (1, 2, 2),
    },
    "down a volume": {
        "size": (9, 6, 4),
        "kernel": (3, 5, 2),
        "padding": (2, 2),
        "stride": (2, 3, 1),
    },
}
EACH = pytest.mark.parametrize("name", LAYERS)
ORDERS = pytest.mark.parametrize("last", [False, True], ids=["first", "last"])


@pytest.fixture
def _sharing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads share a sample that is one band, however little work it is."""
    interleaving.shares.cache_clear()
    monkeypatch.setattr(interleaving, "SHARED_FLOPS", 0)
    yield
    interleaving.shares.cache_clear()


def layer(name: str, itemsize: int = 4, last: bool = False) -> Correlation:
    given = LAYERS[name]
    return image(**given, groups=1, channels=7, outputs=5, itemsize=itemsize, channels_last=last)


def lain(c: Correlation, array: np.ndarray) -> np.ndarray:
    """An array whose third axis is channels, in the memory that the correlation reads or writes."""
    if not c.channels_last:
        return array
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 2, -1)), -1, 2)


def gradient(
    c: Correlation,
    dy: np.ndarray,
    w: np.ndarray,
    kernel: Any = None,
    stop: Callable[[], bool] | None = None,
) -> np.ndarray:
    shape = (len(dy), 1, c.channels, *(a.size for a in c.axes))
    dx = lain(c, np.full(shape, np.nan, dy.dtype))
    computing(stop, kernel or interleaved.backward_input, c, lain(c, dy), w, dx)
    return dx


@pytest.mark.usefixtures("shared", "_sharing")
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("rows", [1, 3, None], ids=["rows", "bands", "whole"])
@ORDERS
@EACH
def test_values(
    name: str, last: bool, rows: int | None, itemsize: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = layer(name, itemsize, last)
    assert interleaving.suits(c)
    if rows is not None:
        monkeypatch.setattr(interleaving, "band", lambda _: rows)
    _, w, _, dy = tensors(c, 3)
    tolerance = 1e-4 if itemsize == 4 else 1e-12
    np.testing.assert_allclose(gradient(c, dy, w), summed(c, dy, w), tolerance, tolerance)


@pytest.mark.usefixtures("shared", "_sharing", "threads_restored")
@pytest.mark.parametrize("itemsize", [4, 8])
@ORDERS
@EACH
def test_the_same_bits_in_any_company_on_any_threads(name: str, last: bool, itemsize: int) -> None:
    c = layer(name, itemsize, last)
    _, w, _, dy = tensors(c, 5)
    alone = np.concatenate([gradient(c, dy[n : n + 1], w) for n in range(5)])
    for threads in (1, 2, 3):
        engine.set_threads(threads)
        for samples in range(1, 6):
            assert gradient(c, dy[:samples], w).tobytes() == alone[:samples].tobytes()
    assert gradient(c, np.asfortranarray(dy), np.asfortranarray(w)).tobytes() == alone.tobytes()
    taps_apart = lain(
        replace(c, channels_last=True), w.reshape(1, c.outputs, c.channels, *c.kernel)
    )
    assert gradient(c, dy, taps_apart).tobytes() == alone.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["dy", "w"])
@ORDERS
@EACH
def test_bad_numbers_reach_what_they_are_added_to_and_nothing_else(
    name: str, last: bool, where: str, bad: float
) -> None:
    c = layer(name, last=last)
    _, w, _, dy = tensors(c, 3)
    if where == "dy":
        place = (-1, *(0,) * (len(c.axes) - 1))
        dy[1, 0, 2, *place] = bad
        dy[1, 0, 3, *place] = -bad  # their sum is another NaN than numbers are to have
    else:
        w[0, 3, c.taps + 1] = bad
    with np.errstate(invalid="ignore"):
        got = gradient(c, dy, w, dispatch._interleaved)
        want = summed(c, dy, w)
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)
    assert set(got.view(np.uint32)[np.isnan(got)].tolist()) <= {0x7FC00000}


def test_scratch_holds_every_band(asked: list[int]) -> None:
    most = 0
    wide: tuple[Any, ...] = ((60, 1500), (4, 4))
    deep: tuple[Any, ...] = ((40, 40), (3, 3))
    line: tuple[Any, ...] = ((30_000,), (7,))
    volume: tuple[Any, ...] = ((12, 50, 40), (4, 3, 4))
    layers = [(wide, 500, 3), (wide, 2, 110), (deep, 300, 300), (line, 90, 40), (line, 3, 70)]
    layers += [(volume, 60, 4), (volume, 2, 50)]
    for ((size, kernel), channels, outputs), itemsize, last in product(
        layers, (4, 8), (False, True)
    ):
        strides = (2,) * len(size)
        c = image(size, kernel, (1, 1), strides, (), itemsize, 1, channels, outputs, last)
        if not interleaving.suits(c):
            continue
        _, w, _, dy = tensors(c, 1)
        want = gradient(c, dy, w, gathered.backward_input)
        asked.clear()
        got = gradient(c, dy, w)
        most = max(most, *asked)
        np.testing.assert_allclose(got, want, 1e-2, 1e-3)
    assert PART_BYTES // 4 < most <= PART_BYTES


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    ("size", "layout"),
    [
        ((24, 24), "OIHW"),
        ((24, 24), "HWIO"),
        ((40, 40), "NHWC OIHW"),
        ((40, 40), "NHWC HWIO"),
        ((40, 40), "NHWC OHWI"),
        ((900,), "OIW"),
        ((900,), "NWC WIO"),
        ((10, 11, 9), "OIDHW"),
        ((10, 11, 9), "NDHWC DHWIO"),
    ],
)
def test_memory_is_what_the_plan_says(size: tuple[int, ...], layout: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 128, *size), np.float32)
    weight = rng.standard_normal((128, 64, *(4,) * len(size)), np.float32)
    *data, of_weight = layout.split()
    config = {"stride": 2, "padding": 1, "weight_layout": of_weight}
    if data:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        config["layout"] = data[0]
    # Of a transposed layer, inputs come first where a convolution's outputs do.
    order = [
        "IO".index(letter) if letter in "IO" else "DHW"[-len(size) :].index(letter) + 2
        for letter in of_weight
    ]
    weight = np.ascontiguousarray(weight.transpose(order))
    assert_workspace_holds("conv_transpose", "forward", config, {"x": x, "weight": weight})


@pytest.mark.parametrize("name", ["even", "line", "volume"])
def test_a_band_can_be_stopped_before_each_product(name: str) -> None:
    c = layer(name)
    rows_of_taps = sum(len(phase.starts) for phase in interleaving.phases(c))
    assert interleaving.band(c) >= interleaving.shared(c)[0].length
    _, w, _, dy = tensors(c, 1)
    polls = count()
    gradient(c, dy, w, stop=lambda: next(polls) < 0)
    most = next(polls)
    assert most >= rows_of_taps
    polls = count()
    with pytest.raises(Stopped):
        gradient(c, dy, w, stop=lambda: next(polls) == most - 1)


def test_threads_are_told_how_much_work_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(interleaved, "for_each", lambda _, __, flops: told.append(flops))
    c = layer("even")
    _, w, _, dy = tensors(c, 3)
    gradient(c, dy, w)
    assert told == [3 * c.flops]
    assert dispatch.adjoint_algorithm(c) == "direct"
