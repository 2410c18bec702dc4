"""Every peer computes the same layer: toy cases of every kind, both ways."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

import engine
from benchmarks.kernels import memory, naive, optional, ours, pytorch
from benchmarks.kernels.cases import Case, inputs
from benchmarks.kernels.measure import Limits, PeersDisagree, Row, _require_equal, measure
from benchmarks.kernels.timing import Budget, Peer
from engine.threads import default_threads

TOYS = (
    Case("toy", "conv", 2, 4, (9, 9), 6, 3, 2, 1, groups=2, bias=True),
    Case("toy-last", "conv", 2, 4, (9, 9), 6, 3, 1, 1, channels_last=True),
    Case("toy-dw", "conv", 2, 4, (7, 8), 4, 3, 1, 1, groups=4),
    Case("toy-1d", "conv", 2, 3, (11,), 4, 5, 1, 2, bias=True),
    Case("toy-3d", "conv", 1, 2, (4, 5, 6), 3, 3, 1, 1, bias=True),
    Case("toy-deconv", "conv_transpose", 2, 4, (5, 5), 6, 4, 2, 1, groups=2, bias=True),
    Case("toy-max", "max_pool", 2, 3, (8, 8), 3, 3, 2, 1),
    Case("toy-max-last", "max_pool", 2, 3, (8, 8), 3, 2, 2, 0, channels_last=True),
    Case("toy-avg", "avg_pool", 2, 3, (8, 8), 3, 3, 1, 1),
    Case("toy-global", "adaptive_avg_pool", 2, 3, (8, 8), 3, 0),
)
ACTIONS = ("forward", "backward")


@pytest.fixture(autouse=True)
def threads_restored() -> Iterator[None]:
    yield
    engine.set_threads(default_threads())


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("case", TOYS, ids=lambda case: case.name)
def test_naive_agrees_with_the_engine(case: Case, action: str) -> None:
    tensors = inputs(case.tensors(), action)
    one = ours.prepare(case, action, "direct", tensors)
    expected = ours.request(one.on(tensors)(), one.samples)
    baseline = naive.forward if action == "forward" else naive.backward
    found = baseline(case, tensors)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("case", TOYS, ids=lambda case: case.name)
def test_pytorch_agrees_with_naive(case: Case, action: str) -> None:
    torch = optional.find("torch")
    if torch is None:
        pytest.skip("PyTorch is not installed")
    tensors = inputs(case.tensors(), action)
    baseline = naive.forward if action == "forward" else naive.backward
    result = pytorch.call(torch, case, action, tensors)()
    found = pytorch.outputs(case, action, result)
    assert found.keys() == baseline(case, tensors).keys()
    assert pytorch.agree(found, baseline(case, tensors)) < 1e-5


def measured(case: Case, action: str) -> Row:
    limits = Limits(Peer("sgemm", lambda: None), Peer("copy", lambda: None), 1, 1, threads=1)
    return measure(case, action, limits, None, Budget(0, least=2, burst=0))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_row_without_pytorch(action: str) -> None:
    row = measured(dataclasses.replace(TOYS[0], end_to_end=True), action)
    assert row.pytorch_over == {}
    assert {"auto", "fastest", "direct", "end_to_end", "naive"} <= row.timings.keys()
    assert all(timing.rounds == 2 and timing.calls >= 2 for timing in row.timings.values())
    assert row.naive_over["auto"].low <= row.naive_over["auto"].median
    assert row.workspace["naive"] > 0


def test_algorithms_that_run_the_same_share_a_measurement() -> None:
    row = measured(TOYS[6], "forward")
    assert set(row.algorithms.values()) == {"direct"}
    assert row.timings["auto"] == row.timings["fastest"] == row.timings["direct"]


def test_a_peer_that_computes_something_else_is_refused() -> None:
    right = {"y": np.ones(3, np.float32)}
    _require_equal(TOYS[0], "forward", "ours", right, right)
    for wrong in (1.01, np.nan):
        # A NaN compares as neither larger nor smaller, and must not pass for agreement.
        with pytest.raises(PeersDisagree, match="toy forward: ours is off"):
            _require_equal(TOYS[0], "forward", "ours", {"y": right["y"] * wrong}, right)


def test_workspace_is_what_is_held_beside_the_outputs() -> None:
    def call() -> dict[str, np.ndarray]:
        scratch = np.ones(1 << 20, np.uint8)
        return {"y": np.full(1 << 18, scratch[0], np.uint8)}

    outputs, peak = memory.workspace(call)
    assert outputs["y"].nbytes == 1 << 18
    assert 1 << 20 <= peak < (1 << 20) + (1 << 14)


def test_what_computes_something_else_is_measured_by_itself() -> None:
    """`fastest` looks at no numbers, and its tiles may be others; plain sums are the same for all."""
    tiled = Case("tiled", "conv", 2, 64, (56, 56), 64, 3, 1, 1)
    for case, different in ((tiled, 3), (TOYS[0], 1)):
        variants = ours.variants(case, "forward", inputs(case.tensors(), "forward"))
        assert len({id(one) for one in variants.values()}) == different
