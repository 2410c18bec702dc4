"""The load generator tells the truth: rates, latencies from the due time, wrong answers, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from benchmarks.load import connection, loads
from benchmarks.load.checks import Checker, WrongAnswer
from benchmarks.load.connection import Connection, Reply
from benchmarks.load.generator import report
from benchmarks.load.loads import Closed, Open, Spec, Stop, make
from benchmarks.load.results import COLUMNS, Outcome, Ratio, pooled
from benchmarks.load.streams import names, pack, stream, unpack_tensors

Handler = Callable[[int], Awaitable[bytes]]


def answer(body: bytes, status: str = "200 OK", head: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def loaded(spec: Spec, handler: Handler) -> Closed | Open:
    """Run a load against a server that answers the n-th request with `handler(n)`."""
    request = stream(spec.stream)[0]
    served = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                assert await reader.readexactly(len(request.body)) == request.body
                served += 1
                writer.write(await handler(served))
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        load = make(replace(spec, port=server.sockets[0].getsockname()[1]))
        await load.prepare()
        load.begin(perf_counter())
        await load.run()
    return load


def right(name: str = "small-forward") -> bytes:
    return pack(stream(name)[0].expected)


def test_a_closed_load_has_one_request_under_way_on_each_connection() -> None:
    under_way = most = 0

    async def handler(_: int) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return answer(right())

    spec = Spec(stream="small-forward", connections=3, seconds=0.5)
    load = asyncio.run(loaded(spec, handler))
    assert isinstance(load, Closed)
    assert most == 3
    assert {each.status for each in load.answers} == {200}
    assert len(load.answers) > 3


def test_a_closed_load_opens_a_connection_in_place_of_one_that_is_closed() -> None:
    async def handler(_: int) -> bytes:
        return answer(b"", "503 Service Unavailable", "Retry-After: 1\r\nConnection: close\r\n")

    load = asyncio.run(loaded(Spec(stream="small-forward", connections=2, seconds=0.5), handler))
    assert {each.status for each in load.answers} == {503}
    assert len(load.answers) > 4


def test_an_open_loads_latency_counts_the_wait_for_a_connection() -> None:
    async def handler(_: int) -> bytes:
        await asyncio.sleep(0.05)
        return answer(right())

    # One connection can take 20 requests a second of the 200 that are due.
    spec = Spec(stream="small-forward", connections=1, seconds=0.2, rate=200.0)
    load = asyncio.run(loaded(spec, handler))
    assert isinstance(load, Open)
    waits = [each.end - each.due for each in load.answers]
    assert max(waits) > 0.05 * len(waits) - 0.3 > 0.3


@pytest.mark.parametrize(("stale_s", "kept"), [(0.0, False), (60.0, True)])
def test_an_open_load_does_not_use_a_connection_that_has_long_been_idle(
    stale_s: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []
    connect = Open.connect

    async def connected(load: Open) -> Connection:
        opened.append(await connect(load))
        return opened[-1]

    async def handler(_: int) -> bytes:
        return answer(right())

    monkeypatch.setattr(Open, "connect", connected)
    monkeypatch.setattr(connection, "STALE_S", stale_s)
    spec = Spec(stream="small-forward", connections=1, seconds=0.3, rate=40.0)
    load = asyncio.run(loaded(spec, handler))
    assert len(load.answers) > 1
    assert (len(opened) == 1) is kept


def test_an_open_load_does_not_end_well_without_all_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is never answered would be missing from the latencies, and make them look better."""
    monkeypatch.setattr(loads, "PATIENCE_S", 0.2)
    never = asyncio.Event()

    async def handler(number: int) -> bytes:
        if number == 3:
            await never.wait()
        return answer(right())

    spec = Spec(stream="small-forward", connections=4, seconds=0.2, rate=100.0)
    with pytest.raises(Stop, match="1 requests without an answer"):
        asyncio.run(loaded(spec, handler))


def test_a_refused_request_is_sent_again_once_and_not_before_its_time() -> None:
    async def handler(_: int) -> bytes:
        return answer(b"", "503 Service Unavailable", "Retry-After: 1\r\n")

    spec = Spec(stream="small-forward", connections=4, seconds=0.1, rate=50.0, obey=True)
    load = asyncio.run(loaded(spec, handler))
    first = [each for each in load.answers if not each.first]
    again = [each for each in load.answers if each.first]
    assert len(first) == len(again) > 0
    assert min(each.due for each in again) >= 1.0
    assert set(load.refused_after) == {1}


@pytest.mark.parametrize("echo", [True, False])
def test_a_right_answer_passes(echo: bool) -> None:
    request = stream("small-forward")[0]
    body = request.body if echo else right()
    checker = Checker(echo)
    checker.check(request, Reply(200, None, memoryview(body)))
    checker.check(request, Reply(200, None, memoryview(body)))


def test_a_wrong_answer_does_not() -> None:
    request = stream("small-forward")[0]
    body = bytearray(right())
    body[-1] ^= 1
    with pytest.raises(WrongAnswer, match="not what the engine computes"):
        Checker(False).check(request, Reply(200, None, memoryview(body)))


def test_an_answer_that_is_too_short_does_not() -> None:
    request = stream("small-forward")[0]
    checker = Checker(False)
    checker.check(request, Reply(200, None, memoryview(right())))
    with pytest.raises(WrongAnswer, match="bytes"):
        checker.check(request, Reply(200, None, memoryview(right()[:-8])))


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_an_answer_is_read_however_its_bytes_arrive(step: int) -> None:
    replies: list[Reply] = []
    connection = Connection(lambda _, reply: replies.append(reply), lambda *_: None)
    sent = answer(bytes(range(256)) * 100, "503 Service Unavailable", "retry-after: 7\r\n")
    for start in range(0, len(sent), step):
        piece = sent[start : start + step]
        connection.get_buffer(-1)[: len(piece)] = piece
        connection.buffer_updated(len(piece))
    assert [(r.status, r.retry_after, bytes(r.body)) for r in replies] == [
        (503, 7, bytes(range(256)) * 100)
    ]


def test_there_is_room_after_an_answer_that_is_as_long_as_the_buffer() -> None:
    connection = Connection(lambda *_: None, lambda *_: None)
    room = len(connection.get_buffer(-1))
    sent = answer(b"x" * (room - len(answer(b"x" * 10_000)) + 10_000))
    assert len(sent) == room
    connection.get_buffer(-1)[:] = sent
    connection.buffer_updated(room)
    assert len(connection.get_buffer(-1)) > 0


def test_every_stream_survives_its_own_encoding() -> None:
    for name in (each for each in names() if not each.startswith("large")):
        for request in stream(name):
            assert request.head.endswith(b"Content-Length: %d\r\n" % len(request.body))
            assert unpack_tensors(request.body)
            assert all(np.isfinite(array).all() for array in request.expected.values())


def test_rates_count_answers_in_the_window_and_latencies_their_requests() -> None:
    spec = Spec(stream="small-forward", connections=1, seconds=1.0)
    due = np.array([0.1, 0.3, 0.5, 0.9])
    end = np.array([0.25, 0.5, 0.6, 1.4])
    zero = np.zeros(4)
    outcome = Outcome(spec, due, due + 0.05, end, zero + 200, zero, zero + 8, [2, 2, 4], [])
    assert outcome.rate == pytest.approx(3 / 0.8)
    assert outcome.byte_rate == pytest.approx(24 / 0.8)
    assert sorted(outcome.latencies()) == pytest.approx([0.1, 0.2, 0.5])
    assert sorted(outcome.delays(200)) == pytest.approx([0.05, 0.15, 0.45])
    assert outcome.batch == pytest.approx(3 / 1.25)
    assert pooled([outcome, outcome], 1.0) == pytest.approx(0.5)


def test_a_generators_report_is_read_back() -> None:
    async def one(_: int) -> bytes:
        return answer(right())

    load = asyncio.run(loaded(Spec(stream="small-forward", connections=1, seconds=0.05), one))
    outcome = Outcome.read(report(load))
    assert len(COLUMNS) == 6
    assert len(outcome.end) == len(load.answers)
    assert (outcome.nbytes == len(right()) + len(stream("small-forward")[0].body)).all()


def test_ratios_are_taken_between_neighbours() -> None:
    ratio = Ratio.of([1.0, 20.0, 300.0], [1.0, 10.0, 100.0])
    assert (ratio.median, ratio.low, ratio.high) == (2.0, 1.0, 3.0)
