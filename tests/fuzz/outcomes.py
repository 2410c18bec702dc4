"""What a body comes to, in a form that compares bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from app.errors import LimitExceeded, MalformedBody
from app.wire import Request
from engine.errors import EngineError
from tests.app.limits import decode_limits

LIMITS = decode_limits(max_elements=1 << 16, max_lists=1 << 14)

REFUSALS = (MalformedBody, EngineError, LimitExceeded)
"""What a body may end with; anything else is a finding."""


def outcome(read: Callable[[], object]) -> list[object]:
    """What was read, or all that its refusal says."""
    try:
        return comparable(read())
    except REFUSALS as error:
        issues = [(each.loc, each.msg, each.expected, each.got) for each in error.issues]
        return [type(error).__name__, str(error), *comparable(issues)]


def comparable(value: object) -> list[object]:
    """A value in one row, such that NaN equals itself, 1 is not true, and a view equals its bytes."""
    found: list[object] = []
    waiting = [value]
    # A body nests more deeply than a function may call itself.
    while waiting:
        match value := waiting.pop():
            case Request():
                waiting += value.config, dict(value.tensors), value.wants, value.extra
            case np.ndarray():
                found += value.dtype.str, value.shape, value.tobytes(), value.flags.writeable
            case dict():
                found.append(list(value))
                waiting += value.values()
            case list() | tuple():
                found.append(len(value))
                waiting += value
            case memoryview():
                found.append(repr(bytes(value)))
            case _:
                found.append(repr(value))
    return found
