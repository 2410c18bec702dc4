"""Runs that are not of one length, each in calls of its own or all in one, and pools of such windows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import engine
from engine import threads
from engine.errors import Stopped
from engine.kernels.pools import reducing
from engine.threads import computing
from tests.engine.compare import assert_same_bytes
from tests.engine.kernels.maxima import check_answers, layer
from tests.engine.reference import pools

pytestmark = pytest.mark.usefixtures("sharing")

LAYERS: list[tuple[tuple[int, ...], list[int]]] = [
    ((3, 16, 17, 16), [5, 7]),
    ((3, 64, 11, 8), [4, 3]),
    ((3, 67, 12, 10), [4, 4]),
    ((3, 5, 40, 7), [7, 3]),
    ((3, 33, 5, 7), [8, 9]),
    ((3, 70, 50), [7]),
    ((3, 17, 6, 7, 8), [4, 5, 3]),
]


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("numbers", ["distinct", "equal", "special"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "outs"), LAYERS, ids=str)
def test_maxima_are_those_of_the_reference(
    shape: tuple[int, ...], outs: list[int], dtype: str, numbers: str, last: bool
) -> None:
    config, x, dy = layer({"output_size": outs}, shape, outs, dtype, numbers, last=last)
    want = {"y": pools.adaptive_max_forward(config, {"x": x})["y"]}
    check_answers("adaptive_max_pool", config, x, dy, want)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [*product(["float16", "float32", "float64"], ["distinct", "special"]), ("int32", "distinct")],
)
@pytest.mark.parametrize(("shape", "outs"), LAYERS, ids=str)
def test_means_are_those_of_the_reference_alone_and_on_any_number_of_threads(
    shape: tuple[int, ...],
    outs: list[int],
    dtype: str,
    numbers: str,
    last: bool,
) -> None:
    config, x, dy = layer({"output_size": outs}, shape, outs, "float64", numbers, last=last)
    x, dy = (9 * x).astype(dtype), dy.astype("float32" if dtype == "int32" else dtype)
    with np.errstate(invalid="ignore"):
        want = pools.adaptive_avg_forward(config, {"x": x.astype(float)})
        want |= pools.adaptive_avg_backward(config, {"x": x.astype(float), "dy": dy.astype(float)})
    close = {"float16": 1e-2, "float64": 1e-12}.get(dtype, 1e-5)
    bits = None
    for number in (1, 2):
        threads.set_threads(number)
        for given in (x, np.asfortranarray(x)):
            got = both(config, given, dy)
            for name, array in want.items():
                np.testing.assert_allclose(got[name], array, close, close, err_msg=name)
            assert_same_bytes(got, bits or got)
            bits = got
    for i in range(len(x)):
        alone = both(config, x[i : i + 1], dy[i : i + 1])
        assert_same_bytes(alone, {name: array[i : i + 1] for name, array in got.items()})


def both(config: dict[str, Any], x: np.ndarray, dy: np.ndarray) -> dict[str, np.ndarray]:
    """Means and their gradient."""
    found = engine.forward("adaptive_avg_pool", config, x=x)
    return found | engine.backward("adaptive_avg_pool", config, x=x, dy=dy)


def test_whether_runs_have_calls_of_their_own_does_not_hang_on_how_many_samples_come() -> None:
    one = np.ones((1, 4, reducing.BESIDE))
    for samples in (1, 9):
        near = np.asfortranarray(np.repeat(one, samples, 0))
        assert reducing.many_beside(np.repeat(one, samples, 0), 1)
        assert reducing.many_beside(near[:1], 1)
        assert not reducing.many_beside(near[:1, :, 1:], 1)
    assert not reducing.many_beside(one, 2)


def test_fewer_numbers_beside_a_run_are_many_where_they_are_long_runs_of_memory() -> None:
    for samples in (1, 9):
        wide = np.ones((samples, 4, reducing.FEWER))
        assert reducing.many_beside(wide, 1)
        assert not reducing.many_beside(wide[..., 1:], 1)
        short = np.ones((samples, reducing.FEWER // 4, 4, reducing.RUN_STEP - 1))
        assert not reducing.many_beside(short, 2)


def test_equal_runs_share_their_calls() -> None:
    values = np.arange(2.0 * 9 * 100).reshape(2, 9, 100)
    starts, stops = np.array([0, 0, 0, 2, 2, 5, 5]), np.array([6, 6, 6, 3, 3, 5, 5])
    got = reducing.reduce_runs(np.add, 0.0, values, 1, starts, stops)
    for o, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        np.testing.assert_array_equal(got[:, o], values[:, start:stop].sum(1))
    runs = reducing._alike(np.array([0, 0, 2, 2]), np.array([3, 3, 3, 4]))
    assert np.array_equal(runs, [(0, 2, 3), (2, 3, 4), (0, 2, 2), (3, 3, 4)])
    none = np.zeros(0, np.int64)
    assert [len(each) for each in reducing._alike(none, none)] == [0, 0, 0, 0]


def test_few_short_runs_have_calls_of_their_own() -> None:
    stops = np.array([3, 6, 9])
    runs = reducing._alike(stops - 3, stops)
    results = np.ones((2, reducing.CALL * 2, 3))  # Two additions for each of three.
    assert reducing._few(runs, results)
    assert reducing._few(runs, results[:1])  # However many samples there are.
    assert not reducing._few(runs, results[:, 1:])
    long = reducing._alike(np.array([0]), np.array([reducing.SEVERAL + 1]))
    assert not reducing._few(long, np.ones((1, 10**6, 1)))


def test_long_runs_that_share_members_are_not_laid_out() -> None:
    starts, stops = np.array([0, 90]), np.array([100, 200])
    runs, each = reducing._alike(starts, stops), reducing.LAID_OUT // 105
    assert not reducing._little(runs, stops - starts, np.ones((1, each + 1, 2)))
    assert not reducing._little(runs, stops - starts, np.ones((3, each + 1, 2)))
    assert reducing._little(runs, stops - starts, np.ones((1, each, 2)))


@pytest.mark.parametrize("size", [(4000,), (50, 80)])
@pytest.mark.parametrize("layout", [None, "last"])
def test_sums_of_long_runs_are_exact(size: tuple[int, ...], layout: str | None) -> None:
    """No number is added to a sum of hundreds."""
    x = np.random.default_rng(8).standard_normal((2, 16, *size)) + 1
    config: dict[str, Any] = {"output_size": 7}
    if layout:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        config["layout"] = {3: "NWC", 4: "NHWC"}[x.ndim]
    exact = engine.forward("adaptive_avg_pool", config, x=x)["y"]
    got = engine.forward("adaptive_avg_pool", config, x=x.astype(np.float32))["y"]
    np.testing.assert_allclose(got, exact, rtol=5e-7)


@pytest.mark.parametrize("beside", [3, 1024])
def test_results_lie_as_what_they_are_of(beside: int) -> None:
    values = np.moveaxis(np.ones((2, 5, 9, beside)), -1, 1)
    ends = np.array([0, 4, 9])
    for starts, stops in ((ends[:-1], ends[1:]), (ends[:-1], ends[1:] - 1)):
        got = reducing.reduce_runs(np.maximum, 0.0, values, 3, starts, stops)
        assert np.moveaxis(got, 1, -1).flags.c_contiguous


def test_long_runs_stop_when_they_are_told_to() -> None:
    asked = iter((False, False, True))
    values, ends = np.ones((1, 64, 4096)), np.array([0, 16, 32, 48, 64])
    with pytest.raises(Stopped):
        computing(
            lambda: next(asked), reducing.reduce_runs, np.add, 0.0, values, 1, ends[:-1], ends[1:]
        )
    assert list(asked) == []
