"""What is turned away unread, and what is not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

import pytest

from app.cors import Origins
from app.errors import QueueFull, ShuttingDown, WorkersUnavailable
from app.few import Few
from app.gate import KNOWN_HEADS, Gate, Known, Refusal
from app.heads import HEAD_BYTES, parted
from app.leftover import LONG_REST
from app.lifecycle import Lifecycle
from app.problems import problem
from app.telemetry import Telemetry
from app.visitor import Visitor

FULL = QueueFull("8 requests wait.", retry_after=3)
KNOWN = Known("conv", "forward", 10, 99, 123)
FIELDS = ("Host: x", "Content-Type: application/msgpack", "Content-Length: 10")
BODY = b"0123456789"
TIMING = re.compile(r"(?:(?:decode|queue|compute|encode);dur=0\.000, ){4}total;dur=\d+\.\d{3}")


class Room:
    """A dispatcher of which only the room counts."""

    def __init__(self) -> None:
        self.error: Exception | None = FULL
        self.asked: list[tuple[Visitor, int, int]] = []
        self.gone: list[Visitor] = []
        self.is_crowded = True
        self.few = Few()

    def crowded(self, more: int) -> bool:
        assert more > 0
        return self.is_crowded

    def refusal(self, visitor: Visitor, nbytes: int, ahead: int, expected: int) -> QueueFull | None:
        assert expected == KNOWN.expected
        self.asked.append((visitor, nbytes, ahead))
        if self.error is None or isinstance(self.error, QueueFull):
            return self.error
        raise self.error

    def left(self, visitor: Visitor) -> None:
        self.gone.append(visitor)


class Rig:
    def __init__(self) -> None:
        self.room, self.telemetry, self.lifecycle = Room(), Telemetry(), Lifecycle()
        self.gate = Gate(self.room, self.telemetry, self.lifecycle)  # type: ignore[arg-type]

    def remember(self, data: bytes, known: Known = KNOWN) -> None:
        lines = data.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        parts = (line.partition(b":") for line in lines)
        headers = [(name.lower(), value.strip()) for name, _, value in parts]
        self.gate.remember(parted(data), headers, known)

    def refusal(self, data: bytes) -> Refusal | None:
        return self.gate.refusal(data, parted(data), 7, "here")

    def count(self) -> float:
        labels = {"operation": "conv", "action": "forward", "status": "503"}
        return self.telemetry.registry.get_sample_value("convoke_requests_total", labels) or 0.0


def head(
    *more: str, line: str = "POST /v1/conv/forward HTTP/1.1", fields: tuple[str, ...] = FIELDS
) -> bytes:
    return "\r\n".join([line, *fields, *more, "", ""]).encode()


def within(test: Callable[[Rig], None]) -> Callable[[], None]:
    """Run a test on an event loop."""

    async def run() -> None:
        test(Rig())

    return lambda: asyncio.run(run())


def answered(refusal: Refusal | None) -> tuple[bytes, dict[str, str], dict[str, object]]:
    assert refusal is not None
    top, _, body = refusal.answer.partition(b"\r\n\r\n")
    status, *lines = top.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers.pop("content-length")) == len(body)
    return status.encode(), headers, json.loads(body)


@pytest.mark.parametrize("name", ["it's-mine", '"mine"', "mi\\ne", "it's-\"\\mine"])
def test_a_known_head_is_answered_as_it_would_be_the_long_way(name: str) -> None:
    @within
    def test(rig: Rig) -> None:
        rig.remember(head() + BODY)
        status, headers, body = answered(rig.refusal(head(f"X-Request-Id: {name}") + BODY))
        assert TIMING.fullmatch(headers.pop("server-timing"))
        usual = problem(FULL, name)
        assert status == b"HTTP/1.1 503 Service Unavailable"
        assert headers == {
            "content-type": usual.headers["Content-Type"],
            "retry-after": usual.headers["Retry-After"],
            "x-content-type-options": "nosniff",
            "x-request-id": name,
        }
        assert body == json.loads(usual.body)
        assert rig.room.asked == [(Visitor(name, 7, "here"), 99, 0)]

    test()


@pytest.mark.parametrize(
    ("allowed", "more"),
    [
        ("https://a.example", {"vary": "Origin"}),
        ("*", {"access-control-allow-origin": "*"}),
    ],
)
def test_where_pages_of_other_origins_may_call_it_says_so(
    allowed: str, more: dict[str, str]
) -> None:
    @within
    def test(rig: Rig) -> None:
        rig.gate = Gate(rig.room, rig.telemetry, rig.lifecycle, None, Origins([allowed]))  # type: ignore[arg-type]
        rig.remember(head() + BODY)
        headers = answered(rig.refusal(head() + BODY))[1]
        assert more.items() <= headers.items()

    test()


@within
def test_without_an_id_it_gets_one_and_is_known_by_its_connection(rig: Rig) -> None:
    rig.remember(head("X-Request-Id: a") + BODY)
    _, headers, body = answered(rig.refusal(head() + BODY))
    assert headers["x-request-id"] == body["request_id"]
    assert len(headers["x-request-id"]) == 32
    assert rig.room.asked == [(Visitor("", 7, "here"), 99, 0)]


@pytest.mark.parametrize(
    ("name", "less", "ends"),
    [("X-Request-Id: a", 0, True), ("", 0, False), ("X-Request-Id: a", 1, False)],
)
def test_what_is_long_and_named_ends_its_connection(name: str, less: int, ends: bool) -> None:
    @within
    def test(rig: Rig) -> None:
        length = LONG_REST + len(BODY) - less
        fields = (*FIELDS[:2], f"Content-Length: {length}")
        rig.remember(head(fields=fields) + BODY, KNOWN._replace(length=length))
        refusal = rig.refusal(head(*filter(None, [name]), fields=fields) + BODY)
        assert answered(refusal)[1].get("connection") == ("close" if ends else None)
        assert refusal is not None
        assert refusal[1:] == (LONG_REST - less, ends)

    test()


@within
def test_the_rest_of_a_body_is_told(rig: Rig) -> None:
    rig.remember(head() + BODY)
    for arrived in range(len(BODY) + 1):
        refusal = rig.refusal(head() + BODY[:arrived])
        assert refusal is not None
        assert refusal.left == len(BODY) - arrived
    assert rig.refusal(head() + BODY + b"P") is None  # the next request is there already


@pytest.mark.parametrize(
    "data",
    [
        head(line="POST /v1/conv/backward HTTP/1.1"),
        head(line="POST /v1/conv/forward?x HTTP/1.1"),
        head(line="POST /v1/conv/forward HTTP/1.0"),
        head("Accept: text/plain"),
        head("Authorization: Bearer other"),
        head("X-Request-Id: a", "X-Request-Id: b"),
        head("X-Request-Id: caf\xe9"),
        head("X-Request-Id: " + "x" * 129),
        head(fields=FIELDS[:2]),
        head()[:-2],
        b"\r\n" + head(),
        b"",
    ],
)
def test_what_is_not_known_byte_for_byte_goes_the_long_way(data: bytes) -> None:
    @within
    def test(rig: Rig) -> None:
        rig.remember(head() + BODY)
        assert rig.refusal(data + BODY) is None
        assert rig.room.asked == []

    test()


@pytest.mark.parametrize(
    "data",
    [
        head("Expect: 100-continue"),
        head("Origin: https://page.example"),
        head("Transfer-Encoding: chunked"),
        head("Upgrade: websocket"),
        head("Connection: close"),
        head("Connection: close", "Connection: keep-alive"),
        head("Proxy-Connection: close"),
        head("X-Request-Id: a", "X-Request-Id: b"),
        head("X-Request-Id:a"),
        head(line="POST /v1/conv/forward HTTP/1.0"),
        head("X: " + "y" * HEAD_BYTES),
        head()[:-2],
        b"",
    ],
)
def test_what_asks_for_more_than_a_plain_answer_is_not_remembered(data: bytes) -> None:
    @within
    def test(rig: Rig) -> None:
        rig.remember(data)
        assert rig.refusal(data) is None

    test()


@within
def test_a_body_that_is_not_worth_receiving_goes_the_long_way(rig: Rig) -> None:
    rig.remember(head(), KNOWN._replace(length=(256 << 20) + 1))
    assert rig.refusal(head()) is None


@within
def test_nobody_is_turned_away_while_there_is_room_or_for_another_reason(rig: Rig) -> None:
    rig.remember(head() + BODY)
    for error in (None, WorkersUnavailable()):
        rig.room.error = error
        assert rig.refusal(head() + BODY) is None
    rig.room.error, rig.room.is_crowded = FULL, False
    assert rig.refusal(head() + BODY) is None
    rig.room.is_crowded = True
    assert rig.refusal(head() + BODY) is not None
    rig.lifecycle.drain()
    assert rig.refusal(head() + BODY) is None


def test_whatever_else_fails_while_it_is_refused_goes_the_long_way_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @within
    def test(rig: Rig) -> None:
        rig.remember(head() + BODY)
        for error in (ShuttingDown(), WorkersUnavailable(), MemoryError()):
            rig.room.error = error
            assert rig.refusal(head() + BODY) is None
        assert not caplog.records, "each of these is found again"
        rig.room.error = ZeroDivisionError("as asked")
        assert rig.refusal(head() + BODY) is None
        rig.room.error = FULL
        rig.refusal(head() + BODY)
        assert [ahead for *_, ahead in rig.room.asked] == [0, 1, 2, 3, 4]

    test()
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "ZeroDivisionError: as asked" in caplog.text


@within
def test_all_who_keep_something_for_a_connection_are_told_that_it_has_been_closed(rig: Rig) -> None:
    rig.gate.left(7, "here")
    assert rig.room.gone == [Visitor("", 7, "here")]
    desks = Room()
    rig.gate = Gate(rig.room, rig.telemetry, rig.lifecycle, desks)  # type: ignore[arg-type]
    rig.gate.left(8, "there")
    assert rig.room.gone[1:] == desks.gone == [Visitor("", 8, "there")]


def test_those_who_passed_in_the_same_turn_of_the_loop_are_counted() -> None:
    async def run() -> None:
        rig = Rig()
        rig.remember(head() + BODY)
        rig.room.error = None
        for _ in range(3):
            rig.refusal(head() + BODY)
            rig.refusal(head(line="POST /v1/conv/backward HTTP/1.1"))
            rig.refusal(head(line="GET /livez HTTP/1.1"))  # takes no place, nor does the next
            rig.refusal(head(line="POST /v1/conv/plan HTTP/1.1"))
        assert [ahead for *_, ahead in rig.room.asked] == [0, 2, 4]
        rig.room.error = FULL
        for _ in range(3):
            rig.refusal(head() + BODY)
        assert [ahead for *_, ahead in rig.room.asked[3:]] == [6, 6, 6]
        await asyncio.sleep(0)
        rig.refusal(head() + BODY)
        assert rig.room.asked[-1][-1] == 0

    asyncio.run(run())


def test_those_who_passed_and_have_not_begun_are_counted() -> None:
    async def run() -> None:
        rig = Rig()
        rig.remember(head() + BODY)
        rig.room.error = None
        rig.refusal(head() + BODY)
        rig.gate.starts.places = 2
        for _ in range(2):
            await asyncio.sleep(0)
            rig.room.error = FULL
            rig.refusal(head() + BODY)
            assert rig.room.asked[-1][-1] == 2
        rig.gate.starts.places = 0
        await asyncio.sleep(0)
        rig.refusal(head() + BODY)
        assert rig.room.asked[-1][-1] == 0

    asyncio.run(run())


@within
def test_heads_are_bounded_in_number(rig: Rig) -> None:
    for number in range(3 * KNOWN_HEADS):
        rig.remember(head(f"X: {number}"))
        assert len(rig.gate._known) <= KNOWN_HEADS
    assert rig.refusal(head(f"X: {3 * KNOWN_HEADS - 1}")) is not None


def test_refusals_are_summed_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.gate.SUM_UP_EVERY_S", 0.0)

    async def run() -> None:
        rig = Rig()
        rig.remember(head() + BODY)
        for total in (3, 6):
            for _ in range(3):
                assert rig.refusal(head() + BODY) is not None
            await asyncio.sleep(0.01)
            assert rig.count() == total

    with caplog.at_level("INFO", "convoke.server"):
        asyncio.run(run())
    lines = [vars(record)["fields"] for record in caplog.records]
    assert lines == [{"operation": "conv", "action": "forward", "requests": 3}] * 2
