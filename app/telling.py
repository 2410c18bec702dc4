"""What was wrong, told to whoever sent it: short, as JSON, and never with a tensor's data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Final

from engine.errors import Issue
from engine.words import Words, counted

MAX_TEXT: Final = 120
"""Characters of a value or a name that is repeated to its sender."""

MAX_EXPECTED: Final = 160
"""Characters of what was expected, where an issue is told in a sentence: a longer one lists every name."""

MAX_HINTED: Final = 80
"""The same where the message says what was meant."""

MAX_STEP: Final = 40
"""Characters of a name on the way to a field, there."""

MAX_SENTENCE: Final = 4 * MAX_TEXT
"""Characters of what is said of one."""

MAX_ITEMS: Final = 16
"""Items of a list or a map that is repeated to its sender."""


def entry(issue: Issue) -> dict[str, object]:
    """An issue as an entry of a problem's `errors`."""
    found: dict[str, object] = {
        "loc": [_plain(step) for step in issue.loc],
        "msg": short(issue.msg, MAX_SENTENCE),
    }
    if issue.expected is not None:
        found["expected"] = short(issue.expected, MAX_SENTENCE)
    if issue.expected is not None or issue.got is not None:
        found["got"] = _plain(issue.got)
    return found


def sentence(issue: Issue) -> str:
    """An issue in a sentence, for those who are shown no more of a problem than its `detail`.

    What was expected is in it where it is short, and what was found unless the path has it.
    """
    path = ".".join(_visible(str(step), MAX_STEP) for step in issue.loc)
    text = f"{path}: {issue.msg}" if path else issue.msg
    told = []
    most = MAX_HINTED if "; did you mean " in issue.msg else MAX_EXPECTED
    if issue.expected is not None and len(issue.expected) <= most:
        told.append(f"expected {issue.expected}")
    in_path = isinstance(issue.got, str) and issue.loc[-1:] == (issue.got,)
    if issue.got is not None and not in_path:
        got = _plain(issue.got)
        quoted = got if isinstance(got, Words) else json.dumps(got, ensure_ascii=False)
        told.append(f"got {_visible(quoted, MAX_TEXT)}")
    return f"{text} ({', '.join(told)})" if told else text


def sentences(issues: Sequence[Issue]) -> str:
    """The first of some issues in a sentence, and how many there are besides."""
    others = len(issues) - 1
    return sentence(issues[0]) + (f"; and {others} more" if others else "")


def _visible(text: str, length: int) -> str:
    """A text cut to a length, in which nothing is hidden, moves a cursor or turns what is around it."""
    shown = short(text, length)
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in shown)


def short(text: str, length: int = MAX_TEXT) -> str:
    """A text that JSON in UTF-8 can hold, cut to a length."""
    whole = text if len(text) <= length else text[: length - 1] + "…"
    return whole.encode(errors="backslashreplace").decode()


def _plain(value: object, depth: int = 0) -> object:
    """A value as short JSON: what is long is cut, what is not JSON is named, data is never shown."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        bits = int(value).bit_length()
        return int(value) if bits <= 64 else Words(f"an integer of {bits} bits")
    if isinstance(value, Real):
        return _number(float(value))
    if isinstance(value, str):
        return Words(short(value)) if isinstance(value, Words) else short(value)
    if isinstance(value, list | tuple | dict) and depth == 2:
        return counted(len(value), "item")
    if isinstance(value, list | tuple):
        shown = [_plain(item, depth + 1) for item in value[:MAX_ITEMS]]
        return [*shown, "…"] if len(value) > MAX_ITEMS else shown
    if isinstance(value, dict):
        pairs = list(value.items())[:MAX_ITEMS]
        return {short(str(key)): _plain(item, depth + 1) for key, item in pairs}
    return counted(len(value), "byte") if isinstance(value, bytes) else Words(type(value).__name__)


def _number(value: float) -> object:
    if math.isfinite(value):
        return value
    return Words("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
