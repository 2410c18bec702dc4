"""What a body may ask of its decoder: the last that is read, and the first that is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.errors import LimitExceeded
from app.wire.elements import LARGEST_AXIS, LARGEST_TENSOR
from tests.app.limits import decode_limits
from tests.app.wire.bodies import LIMITS, parse, refusal, tensor, unpack, x

BOTH = pytest.mark.parametrize("read", [parse, unpack], ids=["json", "msgpack"])


def nested(levels: int) -> Any:
    """So many lists within each other."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@BOTH
def test_values(read: Any) -> None:
    most = LIMITS.max_values - 2  # the config, and a list in it
    assert read({"config": {"a": [0] * most}}).config == {"a": [0] * most}
    assert "too many values" in refusal(read, {"config": {"a": [0] * (most + 1)}}).msg


@BOTH
def test_levels(read: Any) -> None:
    most = LIMITS.max_depth - 1  # within the config
    assert read({"config": {"a": nested(most)}}).config == {"a": nested(most)}
    assert "too deeply" in refusal(read, {"config": {"a": nested(most + 1)}}).msg


@BOTH
@pytest.mark.parametrize("place", ["value", "key"])
def test_text(read: Any, place: str) -> None:
    def config(length: int) -> dict[str, str]:
        return {"a" * length: "b"} if place == "key" else {"a": "b" * length}

    assert read({"config": config(LIMITS.max_text)}).config == config(LIMITS.max_text)
    assert "too long" in refusal(read, {"config": config(LIMITS.max_text + 1)}).msg


def test_lists_of_json() -> None:
    limits = decode_limits(max_lists=9)
    assert parse({"x": [[1]] * 8}, limits).tensors["x"].shape == (8, 1)
    issue = refusal(parse, {"x": [[1]] * 9}, limits, LimitExceeded)
    assert (issue.loc, issue.got) == (("cost", "json_lists"), 10)


def shaped(shape: list[int], read: Any) -> Any:
    """A body with an empty tensor that says it has this shape."""
    if read is parse:
        return x(shape=shape, data=[])
    return {"x": tensor(np.empty(0, np.float32), shape=shape)}


@BOTH
def test_axes(read: Any) -> None:
    shape = [LARGEST_AXIS, 0]
    assert read(shaped(shape, read)).tensors["x"].shape == tuple(shape)
    issue = refusal(read, shaped([LARGEST_AXIS + 1, 0], read))
    assert issue.loc == ("x", "shape", 0)


@BOTH
def test_bytes_of_a_shape(read: Any) -> None:
    # Of axes whose product is 2⁶⁰ - 1, and 2⁶⁰.
    assert 8 * (2**60 - 1) <= LARGEST_TENSOR < 8 * 2**60
    shape = [0, 2**30 - 1, 2**30 + 1]
    assert read(shaped(shape, read)).tensors["x"].shape == tuple(shape)
    assert refusal(read, shaped([0, 2**30, 2**30], read)).loc == ("x", "shape")
