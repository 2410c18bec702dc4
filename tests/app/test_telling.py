"""What was wrong is told short, in strict JSON, and without data."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.telling import MAX_EXPECTED, MAX_HINTED, MAX_SENTENCE, MAX_TEXT, entry, sentence, sentences
from engine.errors import Issue
from engine.words import counted


def strict(issue: Issue) -> dict[str, Any]:
    """The entry of an issue as a client reads it: no NaN, and no byte that is not UTF-8."""
    text = json.dumps(entry(issue), allow_nan=False, ensure_ascii=False).encode()
    read: dict[str, Any] = json.loads(text)
    return read


def got(value: object) -> Any:
    """What a client sees of a value that was found."""
    return strict(Issue(("x",), "bad", "good", value))["got"]


def test_an_entry_has_path_expected_and_got() -> None:
    issue = Issue(("weight", "shape", 1), "too wide", "3", 4)
    told = {"loc": ["weight", "shape", 1], "msg": "too wide", "expected": "3", "got": 4}
    assert entry(issue) == told


def test_expected_and_got_are_left_out_where_they_mean_nothing() -> None:
    assert entry(Issue((), "no")) == {"loc": [], "msg": "no"}
    # With an expectation, null is a finding.
    assert got(None) is None


@pytest.mark.parametrize(
    ("issue", "told"),
    [
        (Issue((), "nothing there"), "nothing there"),
        (
            Issue(("dy", "shape"), "wrong", "[1, 2]", [1, 3]),
            "dy.shape: wrong (expected [1, 2], got [1, 3])",
        ),
        (
            Issue(("x", 0), "out of range", "0 or more", -1),
            "x.0: out of range (expected 0 or more, got -1)",
        ),
        (Issue(("x",), "bad", "a name", "é"), 'x: bad (expected a name, got "é")'),
        (Issue(("weight",), "missing", "a tensor"), "weight: missing (expected a tensor)"),
        (Issue(("x",), "bad", got=3), "x: bad (got 3)"),
        (
            Issue(("x",), "bad", "1 item", counted(2, "item")),
            "x: bad (expected 1 item, got 2 items)",
        ),
        (Issue(("x",), "bad", "1 item", "2 items"), 'x: bad (expected 1 item, got "2 items")'),
        (Issue(("x",), "bad", "0", 2**70), "x: bad (expected 0, got an integer of 71 bits)"),
        (Issue(("x",), "bad", "0", float("nan")), "x: bad (expected 0, got NaN)"),
        (Issue(("x", "a"), "no such key", "b", "a"), "x.a: no such key (expected b)"),
        (Issue(("x", 1), "bad", "0", 1), "x.1: bad (expected 0, got 1)"),
        (
            Issue(("x", "\x1b\u202e" + 100 * "é"), "no such key"),
            f"x.\\x1b\\u202e{37 * 'é'}…: no such key",
        ),
        (Issue(("x",), "bad", "0", "\x1b\u202e"), 'x: bad (expected 0, got "\\u001b\\u202e")'),
        (
            Issue(("x",), "bad; did you mean y?", MAX_HINTED * "y", "z"),
            f'x: bad; did you mean y? (expected {MAX_HINTED * "y"}, got "z")',
        ),
        (
            Issue(("x",), "bad; did you mean y?", MAX_HINTED * "y" + "y", "z"),
            'x: bad; did you mean y? (got "z")',
        ),
        (
            Issue(("x",), "bad", MAX_EXPECTED * "y", "z"),
            f'x: bad (expected {MAX_EXPECTED * "y"}, got "z")',
        ),
        (Issue(("x",), "bad", MAX_EXPECTED * "y" + "y", "z"), 'x: bad (got "z")'),
        (
            Issue(("x",), "bad", "a name", 1000 * "z"),
            f'x: bad (expected a name, got "{118 * "z"}…)',
        ),
    ],
    ids=lambda value: value.msg if isinstance(value, Issue) else "",
)
def test_a_sentence_tells_what_was_expected_where_it_is_short(issue: Issue, told: str) -> None:
    assert sentence(issue) == told


def test_of_several_the_first_is_told_and_the_others_are_counted() -> None:
    issues = [Issue(("x",), "bad"), Issue(("y",), "worse"), Issue(("z",), "worst")]
    assert sentences(issues[:1]) == "x: bad"
    assert sentences(issues) == "x: bad; and 2 more"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, True),
        (7, 7),
        (2**64 - 1, 2**64 - 1),
        (10**5000, f"an integer of {(10**5000).bit_length()} bits"),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        ("x" * 1000, "x" * 119 + "…"),
        ("\ud800", "\\ud800"),
        ("a\0b", "a\0b"),
        (b"\xff\xfe", "2 bytes"),
        ([1, [2, [3, 4]]], [1, [2, "2 items"]]),
        ((1, 2), [1, 2]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": "1 item"}}),
        (list(range(20)), [*range(16), "…"]),
        (np.zeros((2, 2)), "ndarray"),
        (object(), "object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_found_is_shown_short_and_as_json(value: object, shown: object) -> None:
    found = got(value)
    assert found == shown
    assert type(found) is type(shown), "true is not 1, nor 1 the number 1.0"


def test_names_that_a_client_made_up_are_cut_and_cleaned() -> None:
    issue = Issue(("config", "k" * 10**6 + "\ud800"), "unknown")
    assert len(strict(issue)["loc"][1]) == MAX_TEXT


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN, st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_any_value_makes_short_strict_json(value: object, name: str, text: str) -> None:
    read = strict(Issue((name, 0), text, text, value))
    assert read["loc"][1] == 0
    assert len(read["msg"]) <= 10 * MAX_SENTENCE
    assert len(json.dumps(read)) < 100_000
