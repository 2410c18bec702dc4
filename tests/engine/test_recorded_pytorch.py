"""The engine and the reference against PyTorch's answers, recorded in tests/data/pytorch.npz."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from tests.data.recorded import Arrays, Case, inputs, replay
from tests.engine import reference
from tests.engine.compare import assert_close

RECORDED = list(replay())
ALL = pytest.mark.parametrize(
    ("case", "answer"), RECORDED, ids=[f"{c['seed']}-{c['operation']}" for c, _ in RECORDED]
)


def split_dy(case: Case) -> tuple[Arrays, Arrays]:
    """The tensors of forward, and those of backward."""
    given = inputs(case)
    forward = {name: a for name, a in given.items() if name != "dy"}
    if case["operation"] == "max_unpool":
        return forward, {name: given[name] for name in ("indices", "dy")}
    return forward, given


@pytest.mark.usefixtures("either_way")
@ALL
def test_engine(case: Case, answer: Arrays) -> None:
    operation, config, dtype = case["operation"], case["config"], case["dtype"]
    given, back = split_dy(case)
    got = engine.forward(operation, config, **given) | engine.backward(
        operation, config, None, **back
    )
    assert {str(a.dtype) for name, a in got.items() if name != "indices"} == {dtype}
    assert_close(got, answer, dtype, case)


@ALL
def test_reference(case: Case, answer: Arrays) -> None:
    """The oracle of the generated tests is itself held to PyTorch."""
    operation, config = case["operation"], case["config"]
    given, back = split_dy(case)
    got = reference.forward(operation, config, **given)
    got |= reference.backward(operation, config, None, **back)
    assert_close(got, answer, case["dtype"], case)


def test_recording_is_broad() -> None:
    """Every operation in every number of dimensions, hundreds in all, and nothing pickled."""
    kinds = {(c["operation"], len(c["shapes"]["x"]) - 2) for c, _ in RECORDED}
    spatial = set(reference.OPERATIONS) - {"activation"}
    assert {(operation, rank) for operation in spatial for rank in (1, 2, 3)} <= kinds
    assert len(RECORDED) > 500
    assert all(a.dtype != np.dtype(object) for _, answer in RECORDED for a in answer.values())
