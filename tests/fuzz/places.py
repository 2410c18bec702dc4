"""Where a refusal says that something stands in a body of JSON, there it stands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from engine.errors import Issue, Loc

CUT = 64
"""Characters of a key that a place tells."""

MOST_STEPS = 16
"""Steps that a place tells; a longer way ends before what it leads to."""


class Number(NamedTuple):
    """A number as it was written, so that one which cannot be read is kept too."""

    written: str


class Map(list[tuple[str, Any]]):
    """A map, with the keys that it has twice."""


def check_places(issues: Iterable[Issue], body: bytes) -> None:
    """Follow the places of faults that the service finds by a second look at a body."""
    for issue in issues:
        if any(words in issue.msg for words in (CONSTANT, TWICE, LONG)):
            try:
                tree = json.loads(
                    body, object_pairs_hook=Map, parse_constant=Number, parse_int=Number
                )
            except json.JSONDecodeError:
                # What follows the fault is no JSON, so that nobody can say what is in what.
                assert not issue.loc
            else:
                assert _leads_there(issue, tree), f"{issue} is not there"


CONSTANT = "JSON has no such number"
TWICE = "appears twice in one map"
LONG = "has too many digits"


def _leads_there(issue: Issue, tree: object) -> bool:
    found = _reached(tree, issue.loc)
    if len(issue.loc) >= MOST_STEPS:
        return bool(found)
    if TWICE in issue.msg:
        return len(found) > 1
    if LONG in issue.msg:
        numbers = (each for each in found if type(each) is Number)
        return any(issue.got == f"{len(each.written.lstrip('-'))} digits" for each in numbers)
    return Number(str(issue.got)) in found


def _reached(tree: object, loc: Loc) -> list[Any]:
    """Every value to which a path leads; several only by keys that are twice, or alike up to `CUT`."""
    found = [tree]
    for step in loc:
        found = [item for value in found for item in _under(value, step)]
    return found


def _under(value: object, step: str | int) -> list[Any]:
    if isinstance(value, Map):
        return [item for key, item in value if key[:CUT] == step]
    if isinstance(value, list) and isinstance(step, int):
        return value[step : step + 1]
    return []
