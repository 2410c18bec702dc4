"""Bodies that parse and are refused all the same, and where in JSON that is.

The parser of JSON tells of a map, or of a number, not of its place. So whoever refuses a body looks where
in its text the first fault is, and what leads there, without a loop in Python over what stands before it: a
body may have ten thousand lists that cost their sender five bytes each.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple, NoReturn

import numpy as np

from app.errors import MalformedBody
from app.wire.elements import TENSORS
from engine.errors import Loc

MOST_STEPS: Final = 16
"""Steps of a path that are told; more lead to nothing that is read, but in a tensor of very many axes."""

MOST_SHOWN: Final = 64
"""Characters of a name that are told."""

TEXTS: Final = 'the texts "NaN", "Infinity" and "-Infinity"'
"""What stands for NaN and infinities in the data of tensors."""

STRING: Final = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
"""A string, up to the text's end where it has none of its own: a quote at which nothing is found would be
followed by a search from the next one, and the time would grow with the square of the quotes."""


class Fault(NamedTuple):
    """What is wrong with a value.

    Attributes:
        below: where in the value it is.
        literal: it is a number that JSON lacks; what is expected depends on its place.
    """

    msg: str
    expected: str | None = None
    got: object = None
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


class Refused(Exception):
    """The parser came to a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.msg)
        self.fault = fault


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A map; raises Refused where a key appears twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)[:MOST_SHOWN]
        raise Refused(Fault(f"the key {twice!a} appears twice in one map", below=(twice,)))
    return result


def refuse_constant(constant: str) -> NoReturn:
    """Raise Refused: JSON has neither NaN nor infinities."""
    raise Refused(Fault("JSON has no such number", got=constant, literal=True))


def located(text: str, fault: Fault | None) -> MalformedBody:
    """The error of a body, with its place where that can be told.

    Args:
        text: that was refused; up to the fault it is JSON.
        fault: that the parser came to; None where that is an integer which it cannot read.
    """
    if not _is_json(text):
        return (fault or _long_integer(text)[0])._replace(below=()).at(())
    if fault is None:
        fault, start = _long_integer(text)
        return fault.at(_path(text[:start]))
    if fault.literal:
        return fault.at(_path(text[: _end(_TO_CONSTANT, text)]))
    return fault.at(_path(text[: _end_of_first_refused_map(text)], outer=1))


def _is_json(text: str) -> bool:
    """Whether it is JSON behind its first fault, too: else nobody can say what is in what."""
    try:
        _LENIENT.decode(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True


def _long_integer(text: str) -> tuple[Fault, int]:
    """The first integer that has too many digits, and where these begin."""
    most = sys.get_int_max_str_digits()
    # A number with a fraction or an exponent is none of those that are read digit by digit.
    long = rf"[0-9]{{{most + 1},}}+(?![.eE])"
    before = rf"(?:[^\"0-9]++|{STRING.pattern}|(?!{long}){_NUMBER})*+"
    start = _end(re.compile(before, re.DOTALL), text)
    end = _end(_DIGITS, text, start)
    got = f"{end - start} digits"
    fault = Fault("an integer in the body has too many digits", f"at most {most} digits", got)
    return fault, start


def _end_of_first_refused_map(text: str) -> int:
    """Where the bracket stands with which that map ends."""
    maps = 0

    def counted(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal maps
        maps += 1
        return unique(pairs)

    with suppress(Refused):
        json.JSONDecoder(object_pairs_hook=counted).decode(text)
    # The parser tells of maps as they end; a body may have a thousand.
    end = -1
    for _ in range(maps):
        end = _end(_TO_END_OF_MAP, text, end + 1)
    return end


def _end(pattern: re.Pattern[str], text: str, start: int = 0) -> int:
    """Where a pattern ends that fits whatever stands there."""
    found = pattern.match(text, start)
    assert found is not None
    return found.end()


def _path(text: str, outer: int = 0) -> Loc:
    """What leads to the value behind the beginning of a JSON text, or to a map or list that it is in.

    Args:
        outer: how many maps and lists outside the innermost one that is meant; 0 for the value itself.
    """
    signs = STRING.sub('"', text).encode().translate(None, _NO_SIGNS)
    kinds = np.frombuffer(signs, np.uint8)
    levels = _STEPS[kinds].cumsum(dtype=np.int32)
    # Of maps and lists that end before, nothing counts.
    (kept,) = (levels == np.minimum.accumulate(levels[::-1])[::-1]).nonzero()
    most = min(int(levels[-1]) - outer, MOST_STEPS) if len(levels) else 0
    kinds_kept, levels_kept = kinds[kept], levels[kept]
    strings = (kinds == _QUOTE).cumsum(dtype=np.int32)[kept]
    path: list[int | str] = []
    rest, passed = STRING.finditer(text), 0
    for level in range(1, most + 1):
        (here,) = (levels_kept == level).nonzero()
        kinds_here = kinds_kept[here]
        if kinds_here[0] == _LIST:
            path.append(int((kinds_here == _COMMA).sum()))
            continue
        # The last string of a map that goes on is the key of what goes on in it.
        number = int(strings[here[kinds_here == _QUOTE][-1]])
        key = next(islice(rest, number - passed - 1, None))[0]
        passed = number
        path.append(str(json.loads(key))[:MOST_SHOWN])
    return tuple(path)


_LENIENT: Final = json.JSONDecoder(parse_constant=dict[str, None]().get, parse_int=float)
"""Takes what is refused, and no memory for each NaN."""
_NUMBER: Final = r"[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_DIGITS: Final = re.compile(r"[0-9]*+")
_TO_CONSTANT: Final = re.compile(rf"(?:[^\"NI]++|{STRING.pattern})*+", re.DOTALL)
_TO_END_OF_MAP: Final = re.compile(rf"(?:[^\"}}]++|{STRING.pattern})*+", re.DOTALL)
_LIST, _COMMA, _QUOTE = b'[,"'
_NO_SIGNS: Final = bytes(set(range(256)) - set(b'[]{},"'))
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
