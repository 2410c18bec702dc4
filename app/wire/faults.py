"""JSON that parses and is refused all the same, and where in a body that is.

The parser tells of a map, or of a number, not of its place. So whoever refuses a body has it parsed once
more, with what is at fault marked in place of being refused, and looks for the mark. Only that loops in
Python, and only over a body that has its refusal.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn

from app.errors import MalformedBody
from app.wire.elements import TENSORS
from engine.errors import Loc

MOST_STEPS: Final = 16
"""Steps of a path that are told; more lead to nothing that is read, but in a tensor of very many axes."""

TEXTS: Final = 'the texts "NaN", "Infinity" and "-Infinity"'
"""What stands for NaN and infinities in the data of tensors."""


class Fault(NamedTuple):
    """What is wrong with a value, in whose place it stands.

    Attributes:
        below: where in the value it is.
        literal: it is a number that JSON lacks; what is expected depends on its place.
    """

    msg: str
    expected: str | None = None
    got: str | None = None
    below: Loc = ()
    literal: bool = False

    def at(self, loc: Loc) -> MalformedBody:
        """The error of the value at a place."""
        expected = self.expected
        if self.literal:
            # A tensor may be a list, or a map with its data.
            first, second = (*loc, "data", "data")[:2]
            data = first in TENSORS and (second == "data" or isinstance(second, int))
            expected = TEXTS if data else "a finite number"
        return MalformedBody.at((*loc, *self.below), self.msg, expected, self.got)


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A map; raises MalformedBody where a key appears twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _twice(pairs)._replace(below=()).at(())
    return result


def refuse_constant(constant: str) -> NoReturn:
    """Raise MalformedBody: JSON has neither NaN nor infinities."""
    raise _CONSTANTS[constant].at(())


def located(text: str, error: MalformedBody | None) -> MalformedBody:
    """The error of a body, with its place where that can be told.

    Args:
        text: that was refused. error: as it is known; None where the parser cannot read an integer.
    """
    found = None
    with suppress(
        json.JSONDecodeError, RecursionError
    ):  # what comes after it may be no JSON at all
        try:
            found = _first(_marking(integers=error is None).decode(text))
        except ValueError as other:
            if isinstance(other, json.JSONDecodeError):
                raise
            found = _first(_marking(integers=True).decode(text))
    return found or error or Fault(_TOO_LONG).at(())


def _first(body: object) -> MalformedBody | None:
    """The first fault. No more is held than the maps and lists that lead to a value."""
    levels: list[Iterator[tuple[Any, object]]] = [iter([("", body)])]
    path: list[str | int] = []
    while levels:
        for step, value in levels[-1]:
            if isinstance(value, Fault):
                return value.at((*path, step)[1 : MOST_STEPS + 1])
            if isinstance(value, dict | list):
                path.append(step)
                levels.append(_within(value))
                break
        else:
            levels.pop()
            path[-1:] = ()
    return None


def _within(value: dict[str, object] | list[object]) -> Iterator[tuple[Any, object]]:
    """The items of a map or a list, with what leads to each; of a list of numbers none."""
    if isinstance(value, dict):
        return ((key[:64], item) for key, item in value.items())
    return iter(()) if set(map(type, value)) <= _SOUND else enumerate(value)


def _twice(pairs: list[tuple[str, object]]) -> Fault:
    counts = Counter(key for key, _ in pairs)
    twice = next(key for key, count in counts.items() if count > 1)
    return Fault(f"the key {twice[:64]!a} appears twice in one map", below=(twice[:64],))


def _marking(*, integers: bool) -> json.JSONDecoder:
    """A parser that marks faults, integers too if asked to.

    Marks take no memory to speak of: all NaN share one, integers that have one are long, and maps are few
    by then.
    """
    # A function of Python's own makes parsing millions of integers take three times as long.
    return json.JSONDecoder(
        object_pairs_hook=_map,
        parse_constant=_CONSTANTS.__getitem__,
        parse_int=_integer if integers else None,
    )


def _map(pairs: list[tuple[str, object]]) -> dict[str, object] | Fault:
    result = dict(pairs)
    return result if len(result) == len(pairs) else _twice(pairs)


def _integer(digits: str) -> int | Fault:
    try:
        return int(digits)
    except ValueError:
        expected = f"at most {sys.get_int_max_str_digits()} digits"
        return Fault(_TOO_LONG, expected, f"{len(digits.lstrip('-'))} digits")


_TOO_LONG: Final = "an integer in the body has too many digits"
_CONSTANTS: Final = {
    name: Fault("JSON has no such number", got=name, literal=True)
    for name in ("NaN", "Infinity", "-Infinity")
}
_SOUND: Final = {int, float, str, bool, type(None)}
