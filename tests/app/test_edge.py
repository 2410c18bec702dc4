"""What every request and every answer has, whatever the route."""

from __future__ import annotations

import asyncio
import json
import logging
import re

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import edge
from app.edge import GONE, KEPT, LAST, OUTLAST, RECORD, ClientGone, Edge
from app.errors import NotFound, QueueFull, ShuttingDown
from app.leftover import LONG_REST
from app.lifecycle import Lifecycle
from app.options import load
from app.telemetry import Telemetry
from tests.app.asgi import Answer, Client, ask, scope_of


async def fine(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


def failing(error: BaseException) -> ASGIApp:
    """An application that does not."""

    async def app(*_: object) -> None:
        raise error

    return app


class Wrapped:
    """An application within the middleware, and what the middleware was given."""

    def __init__(self, app: ASGIApp, **settings: str) -> None:
        environ = {f"CONVOKE_{name.upper()}": value for name, value in settings.items()}
        self.telemetry = Telemetry()
        self.lifecycle = Lifecycle()
        self.edge = Edge(app, load(environ), self.telemetry, self.lifecycle)

    def ask(
        self, headers: dict[str, str] | None = None, method: str = "GET", body: bytes = b""
    ) -> Answer:
        return asyncio.run(ask(self.edge, method, "/", headers, body))

    def count(self, status: int) -> float:
        labels = {"operation": "none", "action": "none", "status": str(status)}
        found = self.telemetry.registry.get_sample_value("convoke_requests_total", labels)
        return found or 0.0


@pytest.mark.parametrize("given", ["a", "!~", "x" * 128, "two words"])
def test_a_request_id_is_echoed(given: str) -> None:
    assert Wrapped(fine).ask({"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, " ", "a\tb", "tab\t", "caf\xe9", "line\n"])
def test_an_odd_request_id_is_replaced(given: str) -> None:
    found = Wrapped(fine).ask({"X-Request-Id": given}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", found)


def test_errors_have_the_request_id_too() -> None:
    answer = Wrapped(failing(QueueFull(retry_after=2.2))).ask({"X-Request-Id": "mine"})
    assert answer.status == 503
    assert answer.headers["x-request-id"] == answer.json["request_id"] == "mine"
    assert answer.headers["retry-after"] == "3"
    assert answer.headers["content-type"] == "application/problem+json"


def test_what_went_wrong_with_us_is_told_to_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "convoke.server"):
        answer = Wrapped(failing(ZeroDivisionError("a secret"))).ask({"X-Request-Id": "mine"})
    assert answer.status == 500
    assert answer.json["type"] == "/problems/internal-error"
    assert b"secret" not in answer.body
    assert b"ZeroDivisionError" not in answer.body
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
    assert record.__dict__["fields"] == {"request_id": "mine"}


def test_a_want_of_memory_is_a_line_of_the_log_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "convoke.server"):
        answer = Wrapped(failing(MemoryError("no 9 GiB"))).ask({"X-Request-Id": "mine"})
    assert answer.status == 503
    assert answer.json["type"] == "/problems/out-of-memory"
    assert b"9 GiB" not in answer.body
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert record.__dict__["fields"] == {"request_id": "mine", "error": "no 9 GiB"}


def test_a_failure_within_an_answer_breaks_the_connection() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    wrapped = Wrapped(app)
    with pytest.raises(ZeroDivisionError):
        wrapped.ask()
    assert wrapped.lifecycle.in_flight == 0


def test_a_client_that_left_gets_nothing_and_is_counted() -> None:
    wrapped = Wrapped(failing(ClientGone()))
    assert wrapped.ask().messages == []
    assert wrapped.count(499) == 1


def test_a_client_that_leaves_within_an_answer_is_no_mistake_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The transport refuses to send; the connection is told to be lost a moment later."""
    wrapped = Wrapped(fine)

    async def scenario() -> None:
        gone = asyncio.get_running_loop().create_future()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                asyncio.get_running_loop().call_later(0.02, gone.set_result, None)
                raise RuntimeError("the handler is closed")

        await wrapped.edge(scope_of("GET", "/") | {GONE: gone}, Client().receive, send)

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert not caplog.records
    assert wrapped.count(499) == 1
    assert wrapped.lifecycle.in_flight == 0


@pytest.mark.parametrize("app", [fine, failing(QueueFull()), failing(ZeroDivisionError())])
def test_every_answer_has_its_times_and_a_refusal_all_of_it(app: ASGIApp) -> None:
    answer = Wrapped(app).ask()
    times = dict(part.split(";dur=") for part in answer.headers["server-timing"].split(", "))
    total = ["total"] if answer.status >= 400 else []
    assert list(times) == ["decode", "queue", "compute", "encode", *total]
    assert all(0 <= float(value) < 60_000 for value in times.values())


def test_work_cut_short_by_the_end_is_answered() -> None:
    wrapped = Wrapped(failing(asyncio.CancelledError()))
    answer = wrapped.ask().json
    assert answer["type"] == "/problems/shutting-down"
    assert answer["detail"] == str(ShuttingDown.unfinished())
    assert wrapped.count(503) == 1


def test_repeated_headers_are_one_list() -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope[RECORD].headers[b"accept"])
        await fine(scope, receive, send)

    wrapped = Wrapped(app)

    async def twice() -> None:
        headers = [(b"accept", b"a/b"), (b"accept", b"c/d")]
        scope = {"type": "http", "method": "GET", "path": "/", "client": None, "headers": headers}
        await wrapped.edge(scope, Client().receive, _nowhere)

    asyncio.run(twice())
    assert seen == [b"a/b, c/d"]


async def _nowhere(_: object) -> None:
    return


def test_errors_may_be_read_too() -> None:
    wrapped = Wrapped(failing(QueueFull()), cors_origins="*")
    headers = wrapped.ask({"Origin": "https://c.example"}).headers
    assert headers["access-control-allow-origin"] == "*"


def test_a_preflight_is_answered_before_the_application() -> None:
    wrapped = Wrapped(failing(ZeroDivisionError()), cors_origins="https://a.example")
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    answer = wrapped.ask(asked, "OPTIONS")
    assert answer.status == 204
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].lower()
    for name in ("authorization", "content-type", "x-deadline-ms", "x-request-id", "accept"):
        assert name in allowed
    assert int(answer.headers["access-control-max-age"]) > 0


def test_a_strangers_preflight_is_an_ordinary_request() -> None:
    wrapped = Wrapped(fine, cors_origins="https://a.example")
    asked = {"Origin": "https://c.example", "Access-Control-Request-Method": "POST"}
    assert wrapped.ask(asked, "OPTIONS").body == b"fine"


@pytest.mark.parametrize("root", ["", "/behind"])
def test_the_server_as_a_whole_says_what_it_takes(root: str) -> None:
    """In the asterisk-form alone, and of no other method."""

    def answer(method: str, path: str) -> Answer:
        scope = scope_of(method, root + path) | {"root_path": root}
        answer = Answer()

        async def send(message: Message) -> None:
            answer.messages.append(message)

        asyncio.run(Wrapped(fine).edge(scope, Client().receive, send))
        return answer

    whole = answer("OPTIONS", "*")
    assert (whole.status, whole.body) == (204, b"")
    assert whole.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert "x-request-id" in whole.headers
    assert answer("OPTIONS", "/*").body == answer("GET", "*").body == b"fine"


def test_a_large_refused_body_closes_the_connection_after_the_answer() -> None:
    async def scenario() -> None:
        client = Client([b"x" * 1000] * 3)
        headers = {"content-length": str(1 << 30)}
        wrapped = Wrapped(failing(QueueFull()))
        answer = await ask(wrapped.edge, "POST", "/", headers, client)
        assert answer.headers["connection"] == "close"
        # The problem went out whole before the rest of the body was read and dropped.
        assert json.loads(answer.messages[1]["body"])["status"] == 503
        assert answer.messages[1]["more_body"]
        assert client.read == 3000
        assert answer.messages[2] == {"type": "http.response.body"}

    asyncio.run(scenario())


@pytest.mark.parametrize("draining", [False, True])
def test_a_long_refused_body_ends_the_connection_once_it_has_come(draining: bool) -> None:
    async def scenario() -> list[object]:
        wrapped, told = Wrapped(failing(NotFound("/"))), list[object]()
        if draining:
            wrapped.lifecycle.drain()
        scope = scope_of("POST", "/", {"content-length": str(LONG_REST)})
        scope[OUTLAST] = lambda: told.append("outlast")

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                assert (b"connection", b"close") in message["headers"]
            told.append(message.get("more_body"))

        await wrapped.edge(scope, Client([b"x" * 1000]).receive, send)
        return told

    # A server that is to stop waits for nobody's rest.
    assert asyncio.run(scenario()) == [None, True, *([] if draining else ["outlast"]), None]


@pytest.mark.parametrize("last", [True, False])
def test_where_the_connection_ends_anyway_its_end_waits_for_the_rest(
    last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed while bytes are unread, it is reset, and what was answered may be lost."""
    monkeypatch.setattr(edge, "LINGER_S", 0.01)
    monkeypatch.setattr(edge, "LINGER_LOOK_S", 0.01)

    async def scenario() -> bool:
        wrapped, client = Wrapped(failing(QueueFull())), Client([])
        scope = scope_of("POST", "/", {"content-length": "1000"}) | {LAST: last}
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        task = asyncio.create_task(wrapped.edge(scope, client.receive, send))
        await asyncio.sleep(0.1)  # for longer than that of what has no end is waited for
        waited = not task.done()
        assert [message.get("more_body") for message in sent] == [None, waited]
        assert wrapped.count(503) == 1  # its story ends with the answer
        if waited:
            wrapped.lifecycle.drain()  # the server is to stop, and does not wait for the rest
        await asyncio.wait_for(task, 10)
        assert not sent[-1].get("more_body")
        return waited

    assert asyncio.run(scenario()) == last


def test_a_small_refused_body_keeps_the_connection() -> None:
    answer = Wrapped(failing(QueueFull())).ask(method="POST", body=b"x" * 1000)
    assert "connection" not in answer.headers
    assert len(answer.messages) == 2


@pytest.mark.parametrize("answering", [failing(QueueFull()), fine], ids=["refused", "answered"])
@pytest.mark.parametrize("expected", ["100-continue", "100-Continue"])
def test_a_client_that_may_send_no_body_is_hung_up_on(answering: ASGIApp, expected: str) -> None:
    """Its next request would be taken for the body of this one."""
    asked = {"headers": {"content-length": "1000", "expect": expected}}
    answer = Wrapped(answering).ask(method="POST", body=b"x" * 1000, **asked)
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    "pieces", [[b"x" * 1000], [b"x" * 400, b"x" * 600]], ids=["whole", "begun"]
)
def test_a_client_that_was_told_to_send_its_body_is_not(pieces: list[bytes]) -> None:
    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        record = scope[RECORD]
        message = await receive()
        record.bytes_in, record.unread = len(message["body"]), message["more_body"]
        await fine(scope, receive, send)

    asked = {"headers": {"content-length": "1000", "expect": "100-continue"}}
    edge = Wrapped(reads).edge
    answer = asyncio.run(ask(edge, "POST", "/", asked["headers"], Client(pieces)))
    assert "connection" not in answer.headers


@pytest.mark.parametrize("answering", [fine, failing(NotFound("/"))], ids=["answered", "refused"])
@pytest.mark.parametrize(
    ("method", "said"), [("GET", "no-store"), ("HEAD", "no-store"), ("POST", None)]
)
def test_no_cache_may_keep_what_is_read(answering: ASGIApp, method: str, said: str | None) -> None:
    assert Wrapped(answering).ask(method=method).headers.get("cache-control") == said


def test_what_may_be_kept_says_so_itself() -> None:
    kept = (b"cache-control", b"public, max-age=60")

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [kept]})
        await send({"type": "http.response.body", "body": b"fine"})

    names = [name for name, _ in Wrapped(app).ask().messages[0]["headers"]]
    assert names.count(b"cache-control") == 1


def test_a_connection_that_is_kept_in_http_1_0_is_said_to_be() -> None:
    async def said(wrapped: Wrapped, **headers: str) -> str:
        answer = Answer()

        async def send(message: Message) -> None:
            answer.messages.append(message)

        scope = scope_of("POST", "/", {"content-length": "1", **headers}) | {KEPT: True}
        await wrapped.edge(scope, Client([b"x"]).receive, send)
        names = [name for name, _ in answer.messages[0]["headers"]]
        assert names.count(b"connection") == 1
        return answer.headers["connection"]

    assert asyncio.run(said(Wrapped(fine))) == "keep-alive"
    assert asyncio.run(said(Wrapped(failing(QueueFull())))) == "keep-alive"
    large = {"content-length": str(1 << 30)}
    assert asyncio.run(said(Wrapped(failing(QueueFull())), **large)) == "close"
    wrapped = Wrapped(fine)
    wrapped.lifecycle.drain()
    assert asyncio.run(said(wrapped)) == "close"


def test_while_draining_every_answer_closes_its_connection() -> None:
    wrapped = Wrapped(fine)
    wrapped.lifecycle.drain()
    assert wrapped.ask().headers["connection"] == "close"


def test_the_log_has_a_line_for_each_request(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "convoke.requests"):
        Wrapped(fine).ask({"X-Request-Id": "mine", "Authorization": "Bearer s3cr3t"})
    (record,) = caplog.records
    line = record.__dict__["fields"]
    assert line["request_id"] == "mine"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/", 200)
    assert (line["bytes_out"], line["client"]) == (4, "192.0.2.1")
    assert "s3cr3t" not in str(line)
