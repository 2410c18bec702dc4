"""The cost of a request, and its limits at their edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from app.cost import CostLimits, check_cost, tensor_bytes, work
from app.errors import LimitExceeded


@dataclass
class Cost:
    flops: int = 50
    input_bytes: int = 4
    output_bytes: int = 10
    workspace_bytes: int = 20
    steps: int = 30


AT_THE_EDGE = CostLimits(output_bytes=10, workspace_bytes=20, flops=50, tensor_bytes=14, steps=30)


def test_what_just_fits_is_accepted() -> None:
    check_cost(Cost(), AT_THE_EDGE)


@pytest.mark.parametrize("name", ["output_bytes", "workspace_bytes", "flops", "steps"])
def test_one_more_is_refused(name: str) -> None:
    limits = replace(AT_THE_EDGE, tensor_bytes=1000)
    with pytest.raises(LimitExceeded) as refusal:
        check_cost(replace(Cost(), **{name: getattr(limits, name) + 1}), limits)
    (issue,) = refusal.value.issues
    assert issue.loc == ("cost", name)
    assert issue.got == getattr(limits, name) + 1
    assert issue.expected is not None
    assert str(getattr(limits, name)) in issue.expected


def test_steps_are_called_what_the_setting_calls_them() -> None:
    """They need not be of windows: layers without any take some, too."""
    with pytest.raises(LimitExceeded) as refusal:
        check_cost(replace(Cost(), steps=31), AT_THE_EDGE)
    assert [issue.msg for issue in refusal.value.issues] == ["too many array operations"]


def test_inputs_and_outputs_have_a_limit_together() -> None:
    with pytest.raises(LimitExceeded) as refusal:
        check_cost(Cost(input_bytes=5), AT_THE_EDGE)
    assert [issue.loc for issue in refusal.value.issues] == [("cost", "tensor_bytes")]


def test_every_exceeded_limit_is_named() -> None:
    with pytest.raises(LimitExceeded) as refusal:
        check_cost(Cost(99, 99, 99, 99, 99), AT_THE_EDGE)
    assert len(refusal.value.issues) == 5


def test_work_grows_with_each_of_its_parts() -> None:
    base = Cost()
    assert tensor_bytes(base) == 14
    for name in ("flops", "input_bytes", "output_bytes", "steps"):
        assert work(replace(base, **{name: 10**6})) > work(base)
