"""The service's error tree."""

from __future__ import annotations

import pytest

import app.errors as errors
from app.errors import (
    Forbidden,
    MalformedBody,
    MethodNotAllowed,
    NotFound,
    QueueFull,
    ServiceError,
    Unauthorized,
)
from engine.errors import EngineError, Issue

KINDS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, ServiceError)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_sentence_of_its_own(kind: type[ServiceError]) -> None:
    others = {other.summary for other in KINDS if other is not kind}
    assert kind.summary.endswith((".", "KEY."))
    assert kind.summary not in others
    assert kind.__doc__
    assert not issubclass(kind, EngineError)


def test_the_tree_in_the_docstring_names_every_error() -> None:
    assert errors.__doc__ is not None
    named = {word for word in errors.__doc__.split() if word.isidentifier()}
    assert {kind.__name__ for kind in KINDS} <= named


def test_the_sentence_stands_in_where_no_detail_is_given() -> None:
    error = QueueFull(retry_after=1.5)
    assert error.detail == str(error) == QueueFull.summary
    assert error.retry_after == 1.5
    assert error.issues == ()


def test_an_error_of_one_field_has_its_path_in_the_detail() -> None:
    error = MalformedBody.at(("x", "shape", 0), "out of range", "0 or more", -1)
    assert type(error) is MalformedBody
    assert error.detail == "x.shape.0: out of range (expected 0 or more, got -1)"
    assert error.issues == (Issue(("x", "shape", 0), "out of range", "0 or more", -1),)
    assert MalformedBody.at((), "nothing there").detail == "nothing there"


def test_a_wrong_method_knows_the_right_ones() -> None:
    error = MethodNotAllowed(["GET", "HEAD"], "PUT")
    assert error.allow == ("GET", "HEAD")
    assert error.issues == (Issue(("method",), "not taken here", "GET or HEAD", "PUT"),)


def test_refusals_of_what_comes_before_the_body_name_it_too() -> None:
    (required,), (other,) = Unauthorized().issues, Unauthorized(given=True).issues
    assert (required.loc, required.expected, required.got) == (
        ("header", "Authorization"),
        "Bearer KEY",
        None,
    )
    assert other.got == "something else"
    assert [issue.loc for issue in Forbidden().issues] == [("header", "Authorization")]
    assert [(issue.loc, issue.got) for issue in NotFound("/x").issues] == [(("path",), "/x")]
