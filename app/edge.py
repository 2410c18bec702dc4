"""The one middleware, pure ASGI: what every request and every answer has, whatever the route.

It names the request, answers preflights and `OPTIONS *`, turns every exception into a problem, adds
the headers that all answers share, and gives the finished story to telemetry. One layer instead of
five, because each layer costs every request.
"""

from __future__ import annotations

import asyncio
import re
from os import urandom
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import logs
from app.cors import PREFLIGHT, Origins
from app.errors import ShuttingDown
from app.leftover import awaits_word, ends_connection, is_endless, rest
from app.lifecycle import Lifecycle
from app.problems import Problem, problem
from app.record import Record
from app.settings import Settings
from app.telemetry import Telemetry

RECORD = "convoke.record"
"""Key of the request's `Record` in its scope."""

GONE = "convoke.gone"
"""Key, in a scope, of a future that is done once the client has left, where the connection knows."""

REST = "convoke.rest"
"""Key, in a scope, of a function that receives the rest of a body in place, see `Incoming`."""

CONNECTION = "convoke.connection"
"""Key, in a scope, of a number that no other connection has, where the server gives them any."""

HEAD = "convoke.head"
"""Key, in a scope, of the `Head` that the request began with, where the connection noted it."""

KEPT = "convoke.kept"
"""Key, in a scope, that is true where a connection of HTTP/1.0 is kept, as the answer has to say."""

OUTLAST = "convoke.outlast"
"""Key, in a scope, of a function that has the connection end not with the answer that is under way but once
the rest of the body has come, see `Incoming`."""

LAST = "convoke.last"
"""Key, in a scope, that is true where the connection ends with this answer, whatever it is."""

ARRIVED = "convoke.arrived"
"""Key, in a scope, of the arrival of the request's first byte, where the connection noted it."""

ANSWERED = "convoke.answered"
"""Key, in a scope, that is true where the connection has answered instead, and has told so."""

CLIENT_GONE = 499
"""Status under which requests are counted whose client left before the answer."""

LINGER_S = 2.0
"""How long the rest of a refused body is read and thrown away before the connection is closed, so that the
refusal is read."""

LINGER_LOOK_S = 2.0
"""How often, meanwhile, it is looked whether the server is to stop or the time is over: a client that
sends nothing would have it wait for longer."""

LEAVE_S = 0.5
"""How long to wait, after an answer could not be sent, to learn whether the client has left."""

CLOSE = (b"connection", b"close")
_KEEP = (b"connection", b"keep-alive")
READ = ["GET", "HEAD"]
"""The methods of what is only read."""

UNKEPT = (b"cache-control", b"no-store")
"""Without a word, a cache may keep what a GET is answered with, a 404 too (RFC 9111, section 4.2.2): others
would be told for minutes that the service is ready, and be given somebody else's request id."""
_ALLOWED = [(b"allow", b"GET, HEAD, OPTIONS, POST")]
"""What `OPTIONS *` is told: the methods that any address takes."""
_PRINTABLE = re.compile(rb"(?! )[\x20-\x7e]{1,128}(?<! )")


class ClientGone(Exception):
    """The client closed its connection before it had the answer."""


class Edge:
    """Wraps the application; see the module."""

    def __init__(
        self, app: ASGIApp, settings: Settings, telemetry: Telemetry, lifecycle: Lifecycle
    ) -> None:
        self._app = app
        self._telemetry = telemetry
        self._lifecycle = lifecycle
        self._origins = Origins(settings.cors_origins)
        self._body_timeout_s = settings.body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = record_of(scope)
        scope[RECORD] = record
        kept = bool(scope.get(KEPT))
        answer = _Answer(
            send, record, self._origins.headers(record.headers), self._lifecycle, kept=kept
        )
        self._lifecycle.begin()
        lingers = False
        try:
            if record.method == "OPTIONS" and self._origins.is_preflight(record.headers):
                await _options(answer, PREFLIGHT)
            elif record.method == "OPTIONS" and _is_to_the_server(scope):
                await _options(answer, _ALLOWED)
            else:
                await self._app(scope, receive, answer)
        except ClientGone:
            record.status = CLIENT_GONE
        except asyncio.CancelledError:
            # The server gives up waiting at the end of its drain; the client still gets an answer.
            lingers = await self._refuse(ShuttingDown.unfinished(), scope, answer)
        except Exception as error:  # noqa: BLE001 - the place where every failure becomes a problem
            if record.status and await _has_left(scope):
                record.status = CLIENT_GONE
            else:
                lingers = await self._refuse(error, scope, answer)
        finally:
            self._lifecycle.end()
            if ANSWERED not in scope:
                self._telemetry.request_done(record)
        if lingers:
            await self._linger(LINGER_S if is_endless(record) else self._body_timeout_s, receive)
            await answer({"type": "http.response.body"})

    async def _refuse(self, error: BaseException, scope: Scope, answer: _Answer) -> bool:
        """Answer with a problem.

        Returns:
            Whether the answer is still to be ended, by `_linger`'s caller: the connection ends with it, and
            the rest of the body is to be read before, so that the client reads the answer.

        Raises:
            BaseException: the error itself, where an answer has begun already.
        """
        record: Record = scope[RECORD]
        refusal = problem(error, record.request_id)
        fields: dict[str, object] = {"request_id": record.request_id}
        if refusal.status == 500:
            logs.server.error("request failed", exc_info=error, extra={"fields": fields})
        elif isinstance(error, MemoryError) and not record.status:
            # Whoever runs the service should know; it is no mistake in it, and no traceback tells more.
            fields["error"] = str(error)
            logs.server.warning("out of memory for a request", extra={"fields": fields})
        if record.status:
            # Half an answer is out; only a broken connection can tell that it is not whole.
            if isinstance(error, ShuttingDown):
                return False  # it is broken all the same, and nothing went wrong
            raise error
        record.problem = refusal.slug
        endless, named = is_endless(record), bool(client_request_id(record))
        outlasts = not (endless or self._lifecycle.draining) and OUTLAST in scope
        outlasts = outlasts and ends_connection(rest(record), refusal.status, named=named)
        # Closed while bytes are unread, a connection is reset, and the answer may be lost with it.
        last = endless or self._lifecycle.draining or scope.get(LAST, False)
        lingers = record.unread and last and not outlasts
        await answer.problem(refusal, close=endless or outlasts, more=lingers or outlasts)
        if outlasts:
            scope[OUTLAST]()
            await answer({"type": "http.response.body"})
        return lingers

    async def _linger(self, seconds: float, receive: Receive) -> None:
        """Receive the rest of a body and forget it, for so long at most, and until the server stops."""
        give_up = monotonic() + seconds
        while not await _drained(receive):
            if self._lifecycle.draining or monotonic() >= give_up:
                return


class _Answer:
    """The `send` of one request: adds the common headers and notes what went out."""

    __slots__ = ("_cors", "_kept", "_lifecycle", "_record", "_send")

    def __init__(
        self,
        send: Send,
        record: Record,
        cors: list[tuple[bytes, bytes]],
        lifecycle: Lifecycle,
        *,
        kept: bool,
    ) -> None:
        self._send = send
        self._record = record
        self._cors = cors
        self._lifecycle = lifecycle
        self._kept = kept

    async def __call__(self, message: Message) -> None:
        """Send one message of the answer."""
        if message["type"] == "http.response.start":
            self._record.status = message["status"]
            headers = [*message.get("headers", ()), *self._record.common_headers(), *self._cors]
            if self._record.method in READ and all(n != b"cache-control" for n, _ in headers):
                headers.append(UNKEPT)
            ends = self._lifecycle.draining or awaits_word(self._record)
            if (ends or self._kept) and CLOSE not in headers:
                headers.append(CLOSE if ends else _KEEP)
            message["headers"] = headers
        else:
            self._record.bytes_out += len(message.get("body", b""))
        await self._send(message)

    async def problem(self, refusal: Problem, *, close: bool, more: bool) -> None:
        """Send a problem.

        Args:
            close: it is the connection's last answer. more: the caller ends it.
        """
        headers = refusal.fields()
        if close:
            headers.append(CLOSE)
        await self({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self({"type": "http.response.body", "body": refusal.body, "more_body": more})


def record_of(scope: Scope) -> Record:
    """Start the story of a request."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if len(headers) < len(scope["headers"]):
        # One after another, what has been joined would be copied for each that comes.
        values: dict[bytes, list[bytes]] = {name: [] for name in headers}
        for name, value in scope["headers"]:
            values[name].append(value)
        headers = {name: b", ".join(parts) for name, parts in values.items()}
    client = scope.get("client")
    return Record(
        request_id=valid_request_id(headers.get(b"x-request-id")) or new_request_id(),
        headers=headers,
        started=scope.get(ARRIVED) or monotonic(),
        method=scope["method"],
        path=scope["path"],
        client=client[0] if client else "",
        unread=b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0",
    )


def valid_request_id(given: bytes | None) -> str:
    """What a client gave as the request's id where it is 1 to 128 printable ASCII characters, else ""."""
    return given.decode() if given and _PRINTABLE.fullmatch(given) else ""


def client_request_id(record: Record) -> str:
    """The id that the client gave the request; "" where it gave none that is valid."""
    return valid_request_id(record.headers.get(b"x-request-id"))


def new_request_id() -> str:
    """An id for a request that came without a valid one."""
    return urandom(16).hex()


def _is_to_the_server(scope: Scope) -> bool:
    """Whether a request is to the server as a whole (RFC 9110, section 9.3.7)."""
    path: str = scope["path"]
    return path.removeprefix(scope["root_path"]) == "*"


async def _options(answer: _Answer, headers: list[tuple[bytes, bytes]]) -> None:
    await answer({"type": "http.response.start", "status": 204, "headers": headers})
    await answer({"type": "http.response.body"})


async def _has_left(scope: Scope) -> bool:
    """Whether the client has left; a transport that takes no more tells so a moment later."""
    if GONE not in scope:
        return False
    await asyncio.wait([scope[GONE]], timeout=LEAVE_S)
    gone: bool = scope[GONE].done()
    return gone


async def _drained(receive: Receive) -> bool:
    """Receive and forget for `LINGER_LOOK_S` at most; whether nothing more will come."""
    try:
        async with asyncio.timeout(LINGER_LOOK_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return True
    except TimeoutError:
        return False
    except asyncio.CancelledError:  # at the very end of the server
        return True
