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

MOST_FAULTS: Final = 1000
"""Faults of one body among which the first is looked for: millions of marks would be gigabytes."""

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
            first, second = (*loc, "data", "data")[
                :2
            ]  # a tensor may be a list, or a map with its data
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
    raise _constant(constant).at(())


def located(text: str, error: MalformedBody | None) -> MalformedBody:
    """The error of a body, with its place where that can be told.

    Args:
        text: that was refused. error: as it is known; None where the parser cannot read an integer.
    """
    parser = _Marking(integers=error is None)
    found = None
    with suppress(ValueError, RecursionError):  # what comes after it may be no JSON at all
        found = _first(parser.decoder.decode(text))
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


def _constant(constant: str) -> Fault:
    return Fault("JSON has no such number", got=constant, literal=True)


class _Marking:
    """A parser that marks up to `MOST_FAULTS` faults, and gives up at the next."""

    def __init__(self, *, integers: bool) -> None:
        self._left = MOST_FAULTS
        # A function of Python's own makes parsing millions of integers take three times as long.
        parse_int = self._integer if integers else None
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._map,
            parse_constant=lambda constant: self._mark(_constant(constant)),
            parse_int=parse_int,
        )

    def _mark(self, fault: Fault) -> Fault:
        self._left -= 1
        if self._left < 0:
            raise ValueError
        return fault

    def _map(self, pairs: list[tuple[str, object]]) -> dict[str, object] | Fault:
        result = dict(pairs)
        return result if len(result) == len(pairs) else self._mark(_twice(pairs))

    def _integer(self, digits: str) -> int | Fault:
        try:
            return int(digits)
        except ValueError:
            expected = f"at most {sys.get_int_max_str_digits()} digits"
            return self._mark(Fault(_TOO_LONG, expected, f"{len(digits.lstrip('-'))} digits"))


_TOO_LONG: Final = "an integer in the body has too many digits"
_SOUND: Final = {int, float, str, bool, type(None)}
