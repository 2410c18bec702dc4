"""The action `plan`: the engine's, with its errors at the place that each name has in a plan's body."""

from __future__ import annotations

from dataclasses import replace

import engine
from app.wire import PlanRequest
from engine.errors import EngineError, Issue


def planned(operation: str, request: PlanRequest) -> engine.Planned:
    """Work out shapes and cost.

    Raises:
        EngineError: the one that `forward` would give; of a tensor that is missing or not known, where its
            shape stands in the body of a plan.
    """
    try:
        return engine.plan(operation, request.config, request.shapes, request.dtype)
    except EngineError as error:
        raise type(error)([_in_shapes(issue) for issue in error.issues]) from None


def _in_shapes(issue: Issue) -> Issue:
    """An issue of a whole tensor, whose path is its name, as one of its shape; any other as it is."""
    if len(issue.loc) != 1:
        return issue
    expected = "a shape" if issue.expected == "a tensor" else issue.expected
    return replace(issue, loc=("shapes", *issue.loc), expected=expected)
