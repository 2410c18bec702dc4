"""Errors → problem+json and its pages."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from typing import Any

import pytest

import app.errors as service
import engine.errors as engine
from app.problems import INTERNAL, KINDS, MAX_ISSUES, MAX_RETRY_S, Kind, pages, problem
from app.telling import MAX_SENTENCE
from engine.errors import Issue

# The contract's section 6, and what goes wrong before there is a request.
STATUS = {
    service.MalformedBody: 400,
    service.MalformedRequest: 400,
    service.Unauthorized: 401,
    service.Forbidden: 403,
    service.NotFound: 404,
    engine.UnknownOperation: 404,
    engine.UnknownAction: 404,
    service.MethodNotAllowed: 405,
    service.NotAcceptable: 406,
    service.RequestTimeout: 408,
    service.BodyTooLarge: 413,
    service.UnsupportedMediaType: 415,
    service.UnsupportedCoding: 415,
    engine.InvalidRequest: 422,
    engine.UnknownField: 422,
    engine.MissingField: 422,
    engine.InvalidValue: 422,
    engine.DtypeMismatch: 422,
    engine.ShapeMismatch: 422,
    engine.EmptyOutput: 422,
    engine.InvalidIndices: 422,
    service.LimitExceeded: 422,
    service.InvalidHeader: 422,
    service.RateLimited: 429,
    service.HeadersTooLarge: 431,
    service.WorkerCrashed: 500,
    service.QueueFull: 503,
    service.TooManyConnections: 503,
    service.ShuttingDown: 503,
    service.WorkersUnavailable: 503,
    service.DeadlineExceeded: 504,
}


def body_of(error: BaseException) -> dict[str, Any]:
    """The problem's JSON, read strictly: no NaN, no byte that is not UTF-8."""

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    body: dict[str, Any] = json.loads(problem(error, "r-1").body, parse_constant=refuse)
    return body


def made(kind: type[BaseException]) -> BaseException:
    if kind is service.MethodNotAllowed:
        return service.MethodNotAllowed(["POST"], "GET")
    if kind is service.NotFound:
        return service.NotFound("/nowhere")
    if kind is service.RequestTimeout:
        return service.RequestTimeout("body", 60.0)
    if kind is service.HeadersTooLarge:
        return service.HeadersTooLarge(65536)
    if issubclass(kind, engine.EngineError):
        return kind(Issue(("x",), "is wrong", "right", "wrong"))
    return kind()


def test_every_error_class_has_a_row() -> None:
    abstract = {service.ServiceError, engine.EngineError}
    classes = {
        value
        for module in (service, engine)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, service.ServiceError | engine.EngineError)
    }
    assert (
        {kind.error for kind in KINDS} - {Exception, MemoryError}
        == classes - abstract
        == set(STATUS)
    )


@pytest.mark.parametrize(("kind", "status"), STATUS.items(), ids=lambda value: str(value))
def test_status_and_members(kind: type[BaseException], status: int) -> None:
    answer = problem(made(kind), "r-1")
    body = body_of(made(kind))
    assert answer.status == body["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert list(body) == ["type", "title", "status", "detail", "request_id", "errors"]
    assert body["type"] == f"/problems/{answer.slug}"
    assert body["request_id"] == "r-1"
    assert body["detail"]


def test_several_issues_are_counted_in_the_detail_and_bounded_in_the_list() -> None:
    issues = [Issue(("config", str(n)), "unknown") for n in range(MAX_ISSUES + 9)]
    body = body_of(engine.UnknownField(issues))
    assert len(body["errors"]) == MAX_ISSUES
    assert body["detail"] == f"config.0: unknown; and {MAX_ISSUES + 8} more"


@pytest.mark.parametrize(
    "error",
    [RuntimeError("secret"), KeyError("secret"), engine.Stopped("secret")],
    ids=lambda error: type(error).__name__,
)
def test_of_our_own_mistakes_nothing_is_told(error: Exception) -> None:
    answer = problem(error, "r-1")
    assert answer.status == 500
    assert answer.slug == INTERNAL.slug
    assert b"secret" not in answer.body
    assert type(error).__name__.encode() not in answer.body
    assert json.loads(answer.body)["errors"] == []


def test_a_long_detail_is_cut() -> None:
    issue = Issue(("config",), "k" * 10**6 + "\ud800")
    for error in (engine.UnknownField(issue), service.MalformedBody.at(issue.loc, issue.msg)):
        assert len(body_of(error)["detail"]) == MAX_SENTENCE


def test_that_there_was_no_memory_is_told_and_no_more() -> None:
    class OfNumPy(MemoryError):
        pass

    answer = problem(OfNumPy("secret"), "r-1")
    assert (answer.status, answer.slug) == (503, "out-of-memory")
    assert answer.headers["Retry-After"] == "1"
    assert b"secret" not in answer.body


def test_a_subclass_is_told_as_its_nearest_row() -> None:
    class Narrower(engine.ShapeMismatch):
        pass

    answer = problem(Narrower(Issue(("x",), "no")), "r")
    assert answer.slug == "shape-mismatch"
    assert problem(service.ServiceError("odd"), "r").slug == INTERNAL.slug


@pytest.mark.parametrize(
    ("wait", "header"),
    [
        (None, 1),
        (0, 1),
        (-4.0, 1),
        (0.2, 1),
        (1.0, 1),
        (1.2, 2),
        (1e9, MAX_RETRY_S),
        (math.inf, MAX_RETRY_S),
        (math.nan, MAX_RETRY_S),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [
        service.QueueFull,
        service.TooManyConnections,
        service.RateLimited,
        service.ShuttingDown,
        service.WorkersUnavailable,
    ],
)
def test_retry_after_is_a_whole_number_of_seconds(
    kind: type[service.ServiceError], wait: float | None, header: int
) -> None:
    assert problem(kind(retry_after=wait), "r").headers["Retry-After"] == str(header)


def test_headers_that_a_status_calls_for() -> None:
    def headers(error: Exception) -> dict[str, str]:
        return {k: v for k, v in problem(error, "r").headers.items() if k != "Content-Type"}

    assert headers(service.MethodNotAllowed(["GET", "HEAD"], "PUT")) == {"Allow": "GET, HEAD"}
    assert headers(service.Unauthorized()) == {"WWW-Authenticate": 'Bearer realm="convoke"'}
    assert headers(service.UnsupportedCoding()) == {"Accept-Encoding": "identity"}
    accept = headers(service.UnsupportedMediaType())["Accept"]
    assert accept.split(", ")[:2] == ["application/vnd.msgpack", "application/json"]
    assert headers(service.NotFound("/nowhere")) == {}
    assert headers(service.DeadlineExceeded()) == {}


class _Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for key, value in attrs if key in ("href", "src")]


def test_the_index_lists_every_page() -> None:
    index = _Links(pages()[""])
    assert sorted(index.links) == sorted(kind.slug for kind in KINDS)
    assert set(pages()) == {"", *index.links}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.slug)
def test_each_page_explains_and_needs_nothing_else(kind: Kind) -> None:
    text = pages()[kind.slug]
    page = _Links(text)
    assert text.startswith("<!doctype html>")
    assert page.links == ["./"]
    assert not {"script", "img", "link", "style"} & set(page.tags)
    assert f"Status {kind.status}" in text
    assert len(kind.about) > 60


def test_slugs_are_unique_and_fit_an_address() -> None:
    slugs = [kind.slug for kind in KINDS]
    assert len(set(slugs)) == len(slugs)
    assert all(slug.replace("-", "").isalpha() and slug.islower() for slug in slugs)
