"""The cases are layers that the engine accepts, and the shapes are those that it resolves."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from benchmarks.kernels import ours
from benchmarks.kernels.cases import CASES, WEAK, inputs

ALL = CASES | WEAK


@pytest.mark.parametrize("name", ALL)
def test_shapes_are_those_of_the_engines_plan(name: str) -> None:
    case = ALL[name]
    arranged = {
        key: case.arranged(key, np.broadcast_to(np.float32(0), shape)).shape
        if case.batch * np.prod(shape) < 1e6
        else _permuted(name, key, shape)
        for key, shape in case.shapes().items()
    }
    given = inputs(arranged, "forward")
    planned = engine.plan(case.operation, ours.config(case, "auto"), given).report()["shapes"]
    assert tuple(planned["dy"]) == arranged["dy"]


def _permuted(name: str, key: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if not ALL[name].channels_last or key == "bias":
        return shape
    return (*shape[2:], shape[1], shape[0]) if key == "weight" else (shape[0], *shape[2:], shape[1])


def test_every_kind_is_there() -> None:
    assert {case.operation for case in CASES.values()} == {
        "conv",
        "conv_transpose",
        "max_pool",
        "avg_pool",
        "adaptive_avg_pool",
    }
    assert {len(case.size) for case in CASES.values()} == {1, 2, 3}
    last = {name for name, case in CASES.items() if case.channels_last}
    assert {"res-64-last", "res-1x1-down-last", "mobile-dw-last", "max-2-last"} <= last


@pytest.mark.parametrize("name", ["tiny", "lenet-1"])
def test_tensors_are_the_same_every_time_and_have_no_denormals(name: str) -> None:
    case = CASES[name]
    for key, array in case.tensors().items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, case.tensors()[key])
        assert np.abs(array[array != 0]).min() > np.finfo(np.float32).tiny


def test_canonical_undoes_arranged() -> None:
    case = CASES["res-64-last"]
    for key, shape in (("x", (2, 3, 4, 5)), ("weight", (2, 3, 4, 5)), ("bias", (7,))):
        values = np.arange(np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(case.canonical(key, case.arranged(key, values)), values)
