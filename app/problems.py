"""Error class → HTTP status, type, title and page; the only such table.

Problems are as in RFC 9457. The module is long because the table is: a row holds everything that is
said about one kind of problem.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Final

import app.errors as service
import engine.errors as engine
from app.telling import MAX_SENTENCE, entry, sentences, short
from app.wire import MEDIA_TYPES
from engine.words import MOST

MAX_ISSUES: Final = MOST
"""Issues told in one problem; those after them are only counted, and so need no hint."""

MAX_RETRY_S: Final = 3600
"""Longest wait that is ever suggested, in seconds."""


@dataclass(frozen=True)
class Kind:
    """One row: the errors of class `error`, and of its subclasses without a row of their own."""

    error: type[BaseException]
    status: int
    slug: str
    title: str
    about: str


@dataclass(frozen=True)
class Problem:
    """An answer that explains a failure.

    Attributes:
        status: of HTTP.
        slug: last part of the problem's `type`, for logs and metrics.
        headers: all that the problem itself calls for, `Content-Type` among them.
        body: the JSON of `application/problem+json`.
    """

    status: int
    slug: str
    headers: Mapping[str, str]
    body: bytes

    def fields(self) -> list[tuple[bytes, bytes]]:
        """Its headers and the length of its body, as they are sent."""
        given = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        return [*given, (b"content-length", str(len(self.body)).encode())]


INTERNAL: Final = Kind(
    Exception,
    500,
    "internal-error",
    "Internal error",
    "Something went wrong on our side, not in your request. The answer's request id finds the "
    "whole story in the service's log; please report it with the request, if you can. Trying again "
    "is safe, since requests change nothing.",
)

KINDS: Final = (
    Kind(
        service.MalformedBody,
        400,
        "malformed-body",
        "Malformed body",
        "The body is not valid msgpack or JSON, or a tensor in it contradicts itself: its bytes do "
        "not fit its shape, its lists are ragged, its dtype is unknown, or bytes follow the end. "
        "A tensor is a map of dtype, shape and data; in JSON a nested list will do, in which NaN "
        "and the infinities are the texts NaN, Infinity and -Infinity. Each entry of errors names "
        "the part at fault.",
    ),
    Kind(
        service.MalformedRequest,
        400,
        "malformed-request",
        "Malformed request",
        "What came over the connection is not valid HTTP, so that nothing of it could be read. The "
        "connection has been closed.",
    ),
    Kind(
        service.RequestTimeout,
        408,
        "request-timeout",
        "Request timeout",
        "The request's headers or its body did not arrive whole in the time that they are given; "
        "header_timeout_s and body_timeout_s of GET /v1/limits tell how long that is, after which the "
        "connection has been closed. A body of which hardly anything comes has less time where there is "
        "no room for others.",
    ),
    Kind(
        service.HeadersTooLarge,
        431,
        "headers-too-large",
        "Headers too large",
        "The request line and the headers together exceed max_header_bytes of GET /v1/limits, or the "
        "headers and trailers are more than max_header_fields. The connection has been closed.",
    ),
    Kind(
        service.Unauthorized,
        401,
        "unauthorized",
        "Key required",
        "This service answers only to those with a key. Send it in the header "
        "Authorization: Bearer KEY.",
    ),
    Kind(
        service.Forbidden,
        403,
        "forbidden",
        "Key not valid",
        "The key in the Authorization header is not one of this service's keys. Check it for a "
        "missing part, or ask whoever runs the service.",
    ),
    Kind(
        service.NotFound,
        404,
        "not-found",
        "Not found",
        "There is nothing at this address. Computations are under /v1/{operation}/{action}; "
        "GET /v1/operations lists them, and /docs shows all addresses.",
    ),
    Kind(
        engine.UnknownOperation,
        404,
        "unknown-operation",
        "Unknown operation",
        "The address names an operation that does not exist. GET /v1/operations lists those that "
        "do; the number of spatial dimensions is no part of the name.",
    ),
    Kind(
        engine.UnknownAction,
        404,
        "unknown-action",
        "Unknown action",
        "The last part of the address is none of forward, backward and plan.",
    ),
    Kind(
        service.MethodNotAllowed,
        405,
        "method-not-allowed",
        "Method not allowed",
        "The address exists, but does not take this method. The Allow header names those it takes: "
        "computations are POST, everything else is GET.",
    ),
    Kind(
        service.NotAcceptable,
        406,
        "not-acceptable",
        "Not acceptable",
        "The Accept header rules out every form that an answer can have. Leave it out to be answered "
        "in the form of the request, or name application/vnd.msgpack or application/json.",
    ),
    Kind(
        service.BodyTooLarge,
        413,
        "body-too-large",
        "Body too large",
        "The body has more bytes than this service accepts; it was not read to its end. "
        "GET /v1/limits tells the limit and the setting behind it. msgpack takes about a fifth of "
        "the bytes of JSON, and samples can be sent in several requests.",
    ),
    Kind(
        service.UnsupportedMediaType,
        415,
        "unsupported-media-type",
        "Unsupported media type",
        "The Content-Type header is missing, or names something other than msgpack "
        "(application/vnd.msgpack, application/msgpack, application/x-msgpack) and JSON "
        "(application/json, in UTF-8).",
    ),
    Kind(
        service.UnsupportedCoding,
        415,
        "unsupported-content-coding",
        "Unsupported content coding",
        "The body is compressed in a way that this service does not read. Send it as it is, without "
        "a Content-Encoding header.",
    ),
    Kind(
        engine.InvalidRequest,
        422,
        "invalid-request",
        "Invalid request",
        "The body is well-formed, but several things in it mean nothing. Each entry of errors names "
        "one, with what was expected and what was found.",
    ),
    Kind(
        engine.UnknownField,
        422,
        "unknown-field",
        "Unknown field",
        "The body or its config has a field that this operation does not know; often it is a "
        "spelling mistake. GET /v1/operations lists every tensor and config field.",
    ),
    Kind(
        engine.MissingField,
        422,
        "missing-field",
        "Missing field",
        "A tensor or a config field that this operation needs was not sent. GET /v1/operations tells "
        "which are required.",
    ),
    Kind(
        engine.InvalidValue,
        422,
        "invalid-value",
        "Invalid value",
        "A field has a value that it does not accept. Each entry of errors tells what it accepts; "
        "true and false are never integers.",
    ),
    Kind(
        engine.DtypeMismatch,
        422,
        "dtype-mismatch",
        "Element types do not fit",
        "A tensor has an element type that it cannot have, or the floating tensors of the request "
        "differ in theirs. All floating tensors of a request have one type, which is also the "
        "result's.",
    ),
    Kind(
        engine.ShapeMismatch,
        422,
        "shape-mismatch",
        "Shapes do not fit",
        "The shapes of the tensors contradict each other or the config: a weight for other channels, "
        "a dy unlike the output, a number of axes that the layout does not have. The action plan "
        "tells the shape of every tensor.",
    ),
    Kind(
        engine.EmptyOutput,
        422,
        "empty-output",
        "Empty output",
        "With this config the output has no elements along a spatial axis: the window is wider than "
        "the padded input. Use less dilation, a smaller kernel, or more padding.",
    ),
    Kind(
        engine.InvalidIndices,
        422,
        "invalid-indices",
        "Indices out of range",
        "An element of indices does not point into its plane. Indices count in row-major order "
        "within the spatial plane of one sample and channel, from 0.",
    ),
    Kind(
        service.LimitExceeded,
        422,
        "limit-exceeded",
        "Limit exceeded",
        "The request would cost more than one request may: in bytes of output, in workspace, in "
        "arithmetic or in numbers of JSON, as worked out from its shapes before anything was "
        "computed. GET /v1/limits tells the limits, the action plan the cost of a request. Samples "
        "can be sent in several requests.",
    ),
    Kind(
        service.InvalidHeader,
        422,
        "invalid-header",
        "Invalid header",
        "A request header has a value that means nothing; the entry of errors names it.",
    ),
    Kind(
        service.RateLimited,
        429,
        "rate-limited",
        "Too many requests",
        "You send more than your share, or your address holds more connections than one may "
        "(max_address_connections of GET /v1/limits). Wait for the seconds in the Retry-After header.",
    ),
    Kind(
        service.QueueFull,
        503,
        "queue-full",
        "Queue full",
        "The service has as much waiting work as it takes. The Retry-After header tells, from the "
        "rate at which the queue drains, after how many seconds there should be room.",
    ),
    Kind(
        service.TooManyConnections,
        503,
        "too-many-connections",
        "Too many connections",
        "The service holds as many connections as max_connections of GET /v1/limits allows. Close "
        "those that you do not need, and try again after the seconds in the Retry-After header.",
    ),
    Kind(
        service.ShuttingDown,
        503,
        "shutting-down",
        "Shutting down",
        "The service is about to end: it finishes what it has accepted and takes nothing new. Try "
        "again after the seconds in the Retry-After header, when another may have taken its place.",
    ),
    Kind(
        service.WorkersUnavailable,
        503,
        "workers-unavailable",
        "No worker available",
        "The processes that compute are being started, or started again. Try again after the seconds "
        "in the Retry-After header.",
    ),
    Kind(
        MemoryError,
        503,
        "out-of-memory",
        "Out of memory",
        "The service could get no memory for this request, since others, or other programs, have it. "
        "Try again after the seconds in the Retry-After header. Where that does not help, send fewer "
        "samples in a request, or ask whoever runs the service.",
    ),
    Kind(
        service.DeadlineExceeded,
        504,
        "deadline-exceeded",
        "Deadline exceeded",
        "The answer was not ready when the deadline of the X-Deadline-Ms header, or the service's "
        "own, passed. Work that waited was dropped, work that ran was stopped.",
    ),
    Kind(
        service.WorkerCrashed,
        500,
        "worker-crashed",
        "Workers crashed",
        "Process after process ended, was killed, or was ended at max_compute_s, while it computed "
        "this request and nothing else, so it was not given to another. That is a mistake of ours, "
        "or of a machine with too little memory, or too slow for what max_flops lets in; please "
        "report it with the request id.",
    ),
    INTERNAL,
)
"""Every kind of problem."""

_BY_CLASS: Final = {kind.error: kind for kind in KINDS}


def problem(error: BaseException, request_id: str) -> Problem:
    """Explain an error to the client; of those without a row of their own, nothing is told."""
    kind = next((_BY_CLASS[base] for base in type(error).__mro__ if base in _BY_CLASS), INTERNAL)
    issues: tuple[engine.Issue, ...] = ()
    if isinstance(error, service.ServiceError | engine.EngineError) and kind is not INTERNAL:
        issues = error.issues
    body = {
        "type": f"/problems/{kind.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": _detail(error, kind, issues),
        "request_id": request_id,
        "errors": [entry(issue) for issue in issues[:MAX_ISSUES]],
    }
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    return Problem(kind.status, kind.slug, _headers(error, kind), text.encode())


def pages() -> dict[str, str]:
    """The HTML page of each problem by its slug, and under "" the list of them all."""
    rows = "\n".join(
        f'<li><a href="{kind.slug}">{escape(kind.title)}</a> ({kind.status})</li>' for kind in KINDS
    )
    index = _page("Problems", f"<p>What an answer's type can be.</p>\n<ul>\n{rows}\n</ul>")
    return {"": index} | {kind.slug: _kind_page(kind) for kind in KINDS}


def _kind_page(kind: Kind) -> str:
    body = f'<p>Status {kind.status}</p>\n<p>{escape(kind.about)}</p>\n<p><a href="./">All problems</a></p>'
    return _page(kind.title, body)


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Convoke: {escape(title)}</title>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _headers(error: BaseException, kind: Kind) -> dict[str, str]:
    headers = {"Content-Type": "application/problem+json"}
    if kind.status in (429, 503):
        wait = error.retry_after if isinstance(error, service.ServiceError) else None
        headers["Retry-After"] = str(max(1, math.ceil(min(MAX_RETRY_S, wait or 1))))
    if isinstance(error, service.MethodNotAllowed):
        headers["Allow"] = ", ".join(error.allow)
    if isinstance(error, service.Unauthorized):
        headers["WWW-Authenticate"] = 'Bearer realm="convoke"'
    if isinstance(error, service.UnsupportedCoding):
        headers["Accept-Encoding"] = "identity"
    elif isinstance(error, service.UnsupportedMediaType):
        headers["Accept"] = ", ".join(MEDIA_TYPES)
    return headers


def _detail(error: BaseException, kind: Kind, issues: tuple[engine.Issue, ...]) -> str:
    if kind is INTERNAL:
        return "Something went wrong on our side; the request id finds it in the log."
    if isinstance(error, service.ServiceError):
        return short(error.detail, MAX_SENTENCE)
    return short(sentences(issues) if issues else kind.title, MAX_SENTENCE)
