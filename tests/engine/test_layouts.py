"""Layouts that would fit are told where channels do not, and none where it could be chance."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.errors import EngineError, ShapeMismatch


def said(operation: str, config: dict[str, Any], x: list[int], weight: list[int]) -> str:
    with pytest.raises(ShapeMismatch) as caught:
        engine.plan(operation, config, {"x": x, "weight": weight})
    (issue,) = caught.value.issues
    return issue.msg.partition("; ")[2]


@pytest.mark.parametrize(
    ("operation", "config", "x", "weight", "meant"),
    [
        ("conv", {}, [1, 32, 32, 3], [3, 3, 3, 8], {"layout": "NHWC"}),
        ("conv", {}, [1, 3, 32, 32], [5, 5, 3, 8], {"weight_layout": "HWIO"}),
        ("conv", {"layout": "NHWC"}, [1, 9, 9, 3], [8, 3, 5, 5], {"weight_layout": "OIHW"}),
        (
            "conv",
            {},
            [1, 32, 32, 3],
            [8, 3, 3, 3],
            {"layout": "NHWC", "weight_layout": "OIHW"},
        ),
        (
            "conv",
            {"groups": 2},
            [1, 32, 32, 4],
            [8, 2, 3, 3],
            {"layout": "NHWC", "weight_layout": "OIHW"},
        ),
        ("conv", {}, [1, 10, 3], [5, 3, 8], {"layout": "NWC"}),
        ("conv_transpose", {}, [1, 3, 8, 8], [8, 3, 4, 4], {"weight_layout": "OIHW"}),
        ("conv_transpose", {}, [1, 3, 8, 8], [4, 4, 8, 3], {"weight_layout": "HWOI"}),
    ],
)
def test_layouts_that_would_fit_are_told_and_do(
    operation: str, config: dict[str, Any], x: list[int], weight: list[int], meant: dict[str, str]
) -> None:
    names = " and ".join(f"{name} {value}" for name, value in meant.items())
    assert said(operation, config, x, weight) == f"they would with {names}"
    engine.plan(operation, config | meant, {"x": x, "weight": weight})


@pytest.mark.parametrize(
    ("operation", "config", "x", "weight"),
    [
        ("conv", {}, [1, 4, 32, 32], [8, 3, 3, 3]),
        ("conv", {}, [1, 4, 32, 32], [3, 8, 4, 3]),  # a window of 3 by 8 it will not be
        ("conv_transpose", {}, [1, 4, 8, 8], [8, 3, 4, 5]),
        # Windows as long as there are channels would be longer than those that were read.
        ("conv", {}, [1, 3, 224, 224], [64, 64, 3, 3]),
        ("conv", {}, [1, 3, 100], [8, 4, 3]),
        ("conv", {}, [1, 6, 4, 3], [8, 3, 6, 6]),  # and these longer than x
        ("conv_transpose", {"groups": 2, "layout": "NHWC"}, [5, 3, 9, 4], [3, 3, 3, 8]),
    ],
)
def test_where_none_would_nothing_is_told(
    operation: str, config: dict[str, Any], x: list[int], weight: list[int]
) -> None:
    assert said(operation, config, x, weight) == ""


@given(
    operation=st.sampled_from(["conv", "conv_transpose"]),
    layout=st.sampled_from([None, "NHWC"]),
    x=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    weight=st.lists(st.integers(1, 9), min_size=4, max_size=4),
    groups=st.integers(1, 3),
)
def test_whatever_is_told_can_be_planned(
    operation: str, layout: str | None, x: list[int], weight: list[int], groups: int
) -> None:
    config = {"layout": layout, "groups": groups}
    shapes = {"x": [1, *x], "weight": weight}
    try:
        engine.plan(operation, config, shapes)
    except EngineError as error:
        told = dict(re.findall(r"(layout|weight_layout) ([A-Z]+)", error.issues[0].msg))
    else:
        return
    if told:
        engine.plan(operation, config | told, shapes)
