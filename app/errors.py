"""What the service can refuse or fail to do, as named errors that know no transport.

    ServiceError
    ├── MalformedBody           the body is not what its media type says
    ├── MalformedRequest        not HTTP
    ├── RequestTimeout          the request did not arrive in time
    ├── HeadersTooLarge         more headers, or bytes of them, than the limit
    ├── Unauthorized            a key is required and was not given
    ├── Forbidden               the key given is not one of ours
    ├── NotFound                nothing under this address
    ├── MethodNotAllowed        the address exists, the method does not
    ├── NotAcceptable           no answer in a form that the caller accepts
    ├── BodyTooLarge            more bytes than the limit
    ├── UnsupportedMediaType    a body in a form that we do not read
    │   └── UnsupportedCoding   a body that is compressed
    ├── LimitExceeded           well-formed, but costs more than one request may
    ├── InvalidHeader           a header whose value means nothing
    ├── RateLimited             too many requests from this caller
    ├── QueueFull               too many requests from everybody
    ├── TooManyConnections      more connections than the limit
    ├── ShuttingDown            the service takes no new work
    ├── WorkersUnavailable      nobody is there to do the work
    ├── DeadlineExceeded        the caller's deadline passed
    └── WorkerCrashed           the request ended worker after worker

Which status each has is told in one place only, the table of `app.problems`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from app.telling import sentence
from engine.errors import Issue, Loc

AUTHORIZATION: Final = ("header", "Authorization")


class ServiceError(Exception):
    """A request that gets no result.

    Attributes:
        detail: what happened to this request, in a sentence for the caller.
        issues: the fields at fault, where there are any.
        retry_after: seconds after which the same request may succeed, where that can be told.
    """

    summary = "The request could not be served."

    def __init__(
        self,
        detail: str | None = None,
        *,
        issues: Iterable[Issue] = (),
        retry_after: float | None = None,
    ) -> None:
        self.detail = self.summary if detail is None else detail
        self.issues: tuple[Issue, ...] = tuple(issues)
        self.retry_after = retry_after
        super().__init__(self.detail)

    @classmethod
    def at(cls, loc: Loc, msg: str, expected: str | None = None, got: object = None) -> Self:
        """Make an error of one field, whose path is `loc`."""
        issue = Issue(loc, msg, expected, got)
        return cls(sentence(issue), issues=[issue])


class MalformedBody(ServiceError):
    """The body is not valid, or a tensor in it contradicts itself."""

    summary = "The body cannot be read."


class MalformedRequest(ServiceError):
    """What came over the connection is not HTTP."""

    summary = "The request is not valid HTTP."


class RequestTimeout(ServiceError):
    """The request did not arrive in the time that it is given.

    Args:
        least: bytes that were to come, where it was not the whole, since there was no room for others.
    """

    summary = "The request did not arrive in time."

    def __init__(self, part: str, limit_s: float, least: int = 0) -> None:
        some = f"{least} bytes, while there is no room for others," if least else "the whole of it"
        expected = f"{some} within {limit_s:g} s"
        super().__init__(
            f"The request's {part} did not arrive in time.",
            issues=[Issue((part,), "did not arrive in time", expected)],
        )


class HeadersTooLarge(ServiceError):
    """The request line and the headers have more bytes than the limit, or the headers are more."""

    summary = "The request line and headers are larger than this service accepts."

    def __init__(self, limit: int, *, number: bool = False) -> None:
        """Name the limit: that on the number of headers and trailers, or else on bytes."""
        detail = f"The request line and headers exceed max_header_bytes, {limit}."
        issue = Issue(("headers",), "too many bytes", f"at most {limit}, with the request line")
        if number:
            detail = f"The headers and trailers are more than max_header_fields, {limit}."
            issue = Issue(("headers",), "too many headers", f"at most {limit}, with the trailers")
        super().__init__(detail, issues=[issue])


class Unauthorized(ServiceError):
    """A key is required and was not given."""

    summary = "This service needs a key: send the header Authorization: Bearer KEY."

    def __init__(self, *, given: bool = False) -> None:
        # What was sent instead may be a secret of some other service.
        got = "something else" if given else None
        super().__init__(issues=[Issue(AUTHORIZATION, "required", "Bearer KEY", got)])


class Forbidden(ServiceError):
    """The key that was given is not valid."""

    summary = "The key in the Authorization header is not valid here."

    def __init__(self) -> None:
        super().__init__(issues=[Issue(AUTHORIZATION, "not a key of this service")])


class NotFound(ServiceError):
    """There is nothing under this address."""

    summary = "There is nothing at this address."

    def __init__(self, path: str, near: Iterable[str] = ()) -> None:
        msg, meant = "there is nothing here", " or ".join(near)
        detail = f"{self.summary} Did you mean {meant}?" if meant else None
        expected = meant or "an address that /openapi.json names"
        super().__init__(detail, issues=[Issue(("path",), msg, expected, path)])


class MethodNotAllowed(ServiceError):
    """The address does not know the method; `allow` names those that it knows."""

    summary = "This address does not take that method."

    def __init__(self, allow: Iterable[str], method: str) -> None:
        self.allow = tuple(allow)
        super().__init__(
            issues=[Issue(("method",), "not taken here", " or ".join(self.allow), method)]
        )


class NotAcceptable(ServiceError):
    """The `Accept` header rules out every form that an answer can have."""

    summary = "No answer can be given in a form that the Accept header allows."


class BodyTooLarge(ServiceError):
    """The body has more bytes than the limit."""

    summary = "The body is larger than this service accepts."


class UnsupportedMediaType(ServiceError):
    """The body comes in a media type that is not read here."""

    summary = "The body's media type is not one that this service reads."


class UnsupportedCoding(UnsupportedMediaType):
    """The body comes in a content coding that is not read here."""

    summary = "The body's content coding is not one that this service reads."


class LimitExceeded(ServiceError):
    """The plan of the request costs more than one request may."""

    summary = "The request costs more than one request may."


class InvalidHeader(ServiceError):
    """A request header has a value that means nothing."""

    summary = "A request header has a value that means nothing."


class RateLimited(ServiceError):
    """The caller sends more than its share."""

    summary = "Too many requests from this caller."


class QueueFull(ServiceError):
    """The queue has no room, by count or by bytes."""

    summary = "The queue is full."


class TooManyConnections(ServiceError):
    """There are more connections than the service holds."""

    summary = "The service holds as many connections as it can."


class ShuttingDown(ServiceError):
    """The service finishes what it has and takes nothing new."""

    summary = "The service is shutting down and takes no new work."

    @classmethod
    def unfinished(cls) -> Self:
        """What was taken, and is not answered when the time to end is up."""
        return cls("The service is shutting down and did not finish this.")


class WorkersUnavailable(ServiceError):
    """There is no worker, nor will there be one at once."""

    summary = "No worker is available."


class DeadlineExceeded(ServiceError):
    """The deadline that the caller set passed before the answer was ready."""

    summary = "The deadline passed before the answer was ready."


class WorkerCrashed(ServiceError):
    """The request ended worker after worker and is not tried on another."""

    summary = "Worker after worker ended while it computed this request, which is not tried again."

    def __init__(self, limit_s: float | None = None) -> None:
        """Name the limit, in seconds, where the last one was ended for it."""
        super().__init__(
            None
            if limit_s is None
            else f"It took longer than max_compute_s, {limit_s:g} s, and is not tried again."
        )
