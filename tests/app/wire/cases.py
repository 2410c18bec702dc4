"""What holds of every format: cases as plain values, which each format's tests write in its own way.

A tensor is told by an array and by what its map says otherwise, so that a format only has to know how
it writes an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from engine.errors import Loc
from tests.app.wire.bodies import HOSTILE_DTYPES, LIMITS, NAMES

Array = np.ndarray[Any, Any]

X = np.arange(6, dtype="<f4").reshape(2, 3)
INTEGER, LENGTH, SHAPE = "an integer", f"0 to {2**31 - 1}", "a list of integers"
DTYPE, BYTES = ", ".join(NAMES), f"at most {2**63 - 1} bytes"
LONG = "a" * (LIMITS.max_text + 1)
WORDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a map",
}


@dataclass(frozen=True)
class Refused:
    """A body, or a tensor, that is not what it says.

    Attributes:
        given: the body; of a tensor, what its map says instead of what X has (`...`: nothing).
        loc: of the one issue, from the body or the tensor on.
        got: what was found there.
        expected: what would have been read, where that is the same in every format.
    """

    given: Any
    loc: Loc
    got: object
    expected: str | None = None

    def __repr__(self) -> str:
        return repr(self.given)[:40]  # names the test

    def agrees(self, issue: Any, loc: Loc = ()) -> None:
        """Assert that an issue is this one, of a tensor at `loc`."""
        assert (issue.loc, issue.got) == ((*loc, *self.loc), self.got)
        assert self.expected in (None, issue.expected)


def word(value: object) -> str:
    """What a value is, in the words of an issue."""
    return WORDS[type(value)]


def axis_word(length: object) -> object:
    """The same of the length of an axis: a float is shown, since an integer is a number too."""
    return length if type(length) is float else word(length)


def same(found: Any, array: Array) -> bool:
    """Whether two arrays have one dtype, one shape and the same bits."""
    return (
        found.dtype == array.dtype
        and found.shape == array.shape
        and found.tobytes() == array.tobytes()
    )


def lists(levels: int) -> Any:
    """A number within so many lists."""
    return [lists(levels - 1)] if levels else 1


NO_DATA: Any = (None, 1, 0.5, 1.5, True, {})
NO_INTEGER: Any = ([[True, 6], [2.0, 3], ["2", 3], [None], [[2, 3]]], [[6, False]])
OUT_OF_RANGE = (
    [[-1], [-1, 3], [-2, -3], [2**31], [2**63 - 1, 2], [2**64 - 1]],
    [[2, -1], [2, -3]],
)
"""Shapes that are at fault in their first axis, and in their second."""

# Their products are 0 and 6 in 64 bits.
TOO_LARGE = (
    [2**31 - 1] * 8,
    [2**30, 2**30, 2**30],
    [0, 2**31 - 1, 2**31 - 1],
    [2**31 - 1, 2**31 - 1, 0],
)

TENSORS_REFUSED = [
    *(
        Refused({"dtype": dtype}, ("dtype",), dtype if type(dtype) is str else word(dtype), DTYPE)
        for dtype in HOSTILE_DTYPES
    ),
    *(
        Refused({"shape": shape}, ("shape", axis), axis_word(shape[axis]), INTEGER)
        for axis, shapes in enumerate(NO_INTEGER)
        for shape in shapes
    ),
    *(
        Refused({"shape": shape}, ("shape", axis), shape[axis], LENGTH)
        for axis, shapes in enumerate(OUT_OF_RANGE)
        for shape in shapes
    ),
    *(Refused({"shape": shape}, ("shape",), shape, BYTES) for shape in TOO_LARGE),
    *(
        Refused({"shape": shape}, ("shape",), word(shape), SHAPE)
        for shape in (6, None, "23", {}, {"0": 2})
    ),
    *(Refused({"data": data}, ("data",), word(data)) for data in NO_DATA),
    *(Refused({part: ...}, (part,), None) for part in ("dtype", "shape", "data")),
]
"""Tensors that contradict themselves."""

BODIES_REFUSED = [
    *(
        Refused(body, (), word(body), "a map")
        for body in (None, True, 1, 1.5, "x", [], [{"x": 1}], [1, 2])
    ),
    *(
        Refused({"weight": value}, ("weight",), word(value))
        for value in (1, 1.5, True, "x", "AAAA")
    ),
    Refused(
        {"config": {"a": lists(LIMITS.max_depth)}},
        ("config", "a", *[0] * (LIMITS.max_depth - 1)),
        None,
        f"at most {LIMITS.max_depth} levels outside tensor data",
    ),
]
"""Bodies that are not what they say, none of which has a tensor."""

LONG_TEXTS = [
    Refused(body, loc, f"{len(LONG)} characters", f"at most {LIMITS.max_text} characters")
    for body, loc in (
        ({"config": {"a": LONG}}, ("config", "a")),
        ({"config": {LONG: 1}}, ("config",)),
        ({LONG: 1}, ()),
    )
]
"""Bodies with a text that is too long; a format may see so before it knows where."""

TENSORS_READ = [
    *(pytest.param(np.array([0, 1, 100], name), {"dtype": name}, id=name) for name in NAMES),
    *(
        pytest.param(
            np.array([0, 1, 100], ">" + short if prefix == ">" else short),
            {"dtype": prefix + short},
            id=prefix + short,
        )
        for short in NAMES.values()
        for prefix in ("", "<", "|", ">")
    ),
    # An axis of length 0 keeps the others.
    *(
        pytest.param(np.empty(shape, np.float32), {}, id=str(shape))
        for shape in ((0,), (0, 3, 4), (2, 0), (2, 0, 3), (0, 2**31 - 1, 2**28))
    ),
]
"""Arrays, in the order of bytes in which they are sent, and what their map says otherwise."""

BODIES_READ: list[dict[str, Any]] = [
    {
        "config": {"stride": [1, 2], "activation": {"name": "elu", "alpha": 0.5}, "größe": "é"},
        "wants": ["dx"],
        "colour": "red",
        "size": 1,
    },
    {"config": {"groups": None}},
    {"config": {"a": LONG[1:]}},
    {"config": {"a": lists(LIMITS.max_depth - 1)}},
]
"""What may stand beside tensors. Each key that no request has is `extra`."""


def is_read(found: Array, sent: Array) -> None:
    """Assert that an array arrived in native order of bytes, and barred from writing."""
    assert same(found, sent.astype(sent.dtype.newbyteorder("=")))
    assert found.dtype.isnative
    assert not found.flags.writeable


def stands_beside(request: Any, rest: dict[str, Any]) -> None:
    """Assert that a request has X, and what a body of `BODIES_READ` says beside it."""
    extra = tuple(name for name in rest if name not in ("config", "wants"))
    assert (request.config, request.wants) == (rest["config"], rest.get("wants"))
    assert request.extra == extra
    assert list(request.tensors) == ["x"]
    assert same(request.tensors["x"], X)
