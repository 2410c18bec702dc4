"""The addresses that somebody may have meant who asked for one where there is nothing."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 64
"""Characters of an address that is compared with those that there are."""

CLOSE = 0.85
"""How much alike two addresses are of which one is taken for a slip of the other; 1 is equal."""


def near(path: str, known: Iterable[str]) -> list[str]:
    """Those of the known addresses that are the path but for slashes, the version or a slip; else none."""
    if len(path) > LONGEST:
        return []
    steps = {one: _steps(one) for one in known}
    asked = _steps(path)
    for meant in (asked, ["v1", *asked]):
        same = [one for one, its in steps.items() if its == meant]
        # `/v1/conv` and `/conv` are short of an action; what follows `/v1/operations` is too much.
        short = [one for one, its in steps.items() if len(its) == 3 and its[:-1] == meant]
        long = [one for one, its in steps.items() if len(its) == 2 and its == meant[:2]]
        if found := same or short or long:
            return found
    return get_close_matches(path, steps, 1, CLOSE)


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step]
