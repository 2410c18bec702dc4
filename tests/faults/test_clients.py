"""Clients that leave, dawdle, never listen or all talk at once cost little and disturb nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import numpy as np
import pytest

from benchmarks.stress.client import Hung, Reply, Wire, ask, request, wire
from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.service import Service, running, until
from benchmarks.stress.traffic import large, packed, recorded
from tests.faults.metrics import metric, metric_at
from tests.faults.pace import slack

MANY = 40
MiB = 1 << 20


def at_rest(service: Service) -> bool:
    """Whether nothing is held for anybody."""
    series = ("convoke_held_bytes", "convoke_requests_in_flight", "convoke_queue_requests")
    return not any(metric(service, each) for each in series)


def answers_right(service: Service) -> None:
    given = recorded()[0]
    assert given.fits(asyncio.run(ask(service.port, given.path, given.body, given.headers)))


def warm(service: Service) -> None:
    """Have every worker map all that it ever does, so that what comes later is seen."""
    assert asyncio.run(Crowd(service.port, recorded()).ask(16, 160)).only_right()


# ---- leaving


GIVEN = recorded()[0]
WHOLE = request(GIVEN.path, GIVEN.body, GIVEN.headers)
HEAD = WHOLE[: WHOLE.index(b"\r\n\r\n") + 4]

STAGES = {
    "connected": b"",
    "in the request line": WHOLE[:8],
    "in the headers": HEAD[:-10],
    "before the body": HEAD,
    "in the body": WHOLE[: len(HEAD) + len(GIVEN.body) // 2],
    "before the answer": WHOLE,
    "while it is computed": request("/v1/conv/forward", large(3.0)),
    "with more on the way": WHOLE * 3,
}


@pytest.mark.parametrize("reset", [False, True], ids=["closing", "resetting"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_client_that_leaves_is_forgotten(impatient: Service, stage: str, reset: bool) -> None:
    warm(impatient)
    before = impatient.held()

    async def leave() -> None:
        async with wire(impatient.port) as connection:
            await connection.say(STAGES[stage])
            if reset:
                connection.abort()

    async def all_leave() -> None:
        await asyncio.gather(*(leave() for _ in range(8 if "computed" in stage else MANY)))

    asyncio.run(all_leave())
    until(lambda: at_rest(impatient))
    until(lambda: impatient.held().files <= before.files + 1)
    answers_right(impatient)
    assert impatient.held().processes == before.processes


# ---- dawdling


async def drip(connection: Wire, data: bytes, pause: float) -> None:
    """Send byte by byte, until the other side has had enough."""
    try:
        for index in range(len(data)):
            await connection.say(data[index : index + 1])
            await asyncio.sleep(pause)
    except ConnectionError:
        return


async def dawdle(service: Service, first: bytes, rest: bytes) -> tuple[Reply, float]:
    """Send the rest of a request slowly; what it is answered with, and when."""
    async with wire(service.port) as connection:
        started = time.monotonic()
        await connection.say(first)
        slowly = asyncio.create_task(drip(connection, rest, 0.1))
        try:
            return await connection.reply(), time.monotonic() - started
        finally:
            slowly.cancel()


CHUNKED = HEAD.replace(
    b"Content-Length: " + str(len(GIVEN.body)).encode(), b"Transfer-Encoding: chunked"
)


@pytest.mark.parametrize(
    ("first", "rest", "limit_s"),
    [
        (b"", WHOLE, 1.0),
        (HEAD[:-2], b"X-A: b\r\n" * 100, 1.0),
        (HEAD, GIVEN.body, 2.0),
        (WHOLE[:-300], WHOLE[-300:], 2.0),
        (CHUNKED, b"1\r\n\x80\r\n" * 1000, 2.0),
        (CHUNKED + b"1;", b"a" * 1000, 2.0),
    ],
    ids=["request line", "headers", "body", "end of the body", "chunks", "a chunk's size"],
)  # fmt: skip
def test_who_sends_byte_by_byte_is_given_up(
    impatient: Service, first: bytes, rest: bytes, limit_s: float
) -> None:
    spare = slack(impatient)

    async def scenario() -> list[tuple[Reply, float]]:
        return await asyncio.gather(*(dawdle(impatient, first, rest) for _ in range(MANY)))

    replies = asyncio.run(scenario())
    most = limit_s + 2.0 + spare()
    for reply, seconds in replies:
        assert (reply.status, reply.slug) == (408, "request-timeout")
        assert limit_s <= seconds < most
    until(lambda: at_rest(impatient))


def test_those_who_dawdle_disturb_nobody(impatient: Service) -> None:
    alone = asyncio.run(Crowd(impatient.port, recorded()).ask(8, 200))

    async def scenario() -> Account:
        slow = [asyncio.create_task(dawdle(impatient, HEAD, GIVEN.body)) for _ in range(200)]
        account = await Crowd(impatient.port, recorded()).ask(8, 200)
        await asyncio.gather(*slow)
        return account

    account = asyncio.run(scenario())
    assert account.only_right(), account
    assert account.slowest < 2.0 + 5 * alone.slowest


REFUSED_EARLY = HEAD.replace(b"application/", b"text/")


@pytest.mark.parametrize(
    ("first", "later"),
    [(WHOLE, b""), (WHOLE, b"\r\n"), (REFUSED_EARLY, GIVEN.body)],
    ids=["nothing", "an empty line", "the body after the answer"],
)
def test_an_idle_connection_is_closed_in_time(
    impatient: Service, first: bytes, later: bytes
) -> None:
    spare = slack(impatient)

    async def scenario() -> tuple[float, float]:
        async with wire(impatient.port) as connection:
            asked = time.monotonic()
            await connection.say(first)
            assert (await connection.reply()).status == (200 if first is WHOLE else 415)
            await connection.say(later)
            answered = time.monotonic()
            assert await connection.ended() == b""
            ended = time.monotonic()
            return ended - asked, ended - answered

    since_asked, since_answered = asyncio.run(scenario())
    assert since_asked > 1.95
    assert since_answered < 3.0 + spare()


# ---- not listening


def test_who_never_reads_the_answer_is_given_up(impatient: Service) -> None:
    x = np.ones((1, 1, 1, 1), np.float32)
    body = packed({"padding": 700}, x=x, weight=x)  # 8 MB of answer
    answers_right(impatient)
    before = impatient.held()
    given_up = 'convoke_rejects_total{reason="answer-not-taken"}'

    async def scenario() -> None:
        all_given_up = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(deaf(all_given_up))
            await asyncio.to_thread(until, lambda: metric(impatient, given_up) == 12)
            all_given_up.set()

    async def deaf(all_given_up: asyncio.Event) -> None:
        async with wire(impatient.port, receive_buffer=4096) as connection:
            await connection.say(request("/v1/conv/forward", body))
            await all_given_up.wait()  # and nothing is read
            assert len(await connection.ended()) < 8_000_000

    asyncio.run(scenario())
    until(lambda: at_rest(impatient))
    assert metric(impatient, given_up) == 12
    answers_right(impatient)
    # Much of it is kept for a while, for the next large work.
    until(lambda: impatient.held().memory - before.memory < 150 * MiB)


def test_who_never_reads_keeps_nobody_else_out() -> None:
    x = np.ones((1, 1, 1, 1), np.float32)
    body = packed({"padding": 700}, x=x, weight=x)  # 8 MB of answer
    kind = {"Content-Type": "application/msgpack"}
    greedy, other = ({**kind, "Authorization": f"Bearer {key}"} for key in ("greedy", "other"))

    async def scenario(port: int) -> list[int]:
        async with AsyncExitStack() as stack:
            for _ in range(12):
                connection = await stack.enter_async_context(wire(port, receive_buffer=4096))
                await connection.say(request("/v1/conv/forward", body, greedy))
            # All of them are held, or refused, which is read as little.
            async with asyncio.timeout(60):
                while await metric_at(port, "convoke_held_bytes") < 15 * MiB * 0.98:
                    await asyncio.sleep(0.1)
            refused = await ask(port, "/v1/conv/forward", body, greedy)
            answers = [await ask(port, GIVEN.path, GIVEN.body, other) for _ in range(20)]
            small = await ask(port, GIVEN.path, GIVEN.body, greedy)
        assert refused.status == 503
        assert b"yet to take" in refused.body
        return [answer.status for answer in (*answers, small)]

    with running("--workers", "2", api_keys="greedy,other", max_held_bytes="40MiB") as service:
        assert set(asyncio.run(scenario(service.port))) == {200}
        until(lambda: at_rest(service))


def test_who_asks_on_without_reading_is_not_read_either(impatient: Service) -> None:
    before = impatient.held()

    async def scenario() -> int:
        said = 0
        async with wire(impatient.port, receive_buffer=4096) as connection:
            try:
                async with asyncio.timeout(8):
                    while True:
                        await connection.say(WHOLE * 20)
                        said += 20 * len(WHOLE)
            except (ConnectionError, TimeoutError):
                return said

    said = asyncio.run(scenario())
    assert said < 32 * MiB, "it was taken in without bound"
    until(lambda: at_rest(impatient))
    until(lambda: impatient.held().rss - before.rss < 32 * MiB)


# ---- all at once


def test_pipelined_requests_are_answered_in_order(impatient: Service) -> None:
    given = recorded(("msgpack",))[:20]
    bad = request("/v1/conv/nothing")

    async def scenario() -> list[Reply]:
        async with wire(impatient.port) as connection:
            whole = [request(each.path, each.body, each.headers) + bad for each in given]
            sending = asyncio.create_task(connection.say(b"".join(whole)))
            replies = [await connection.reply() for _ in range(2 * len(given))]
            await sending
            return replies

    replies = asyncio.run(scenario())
    assert all(each.fits(reply) for each, reply in zip(given, replies[::2], strict=True))
    assert {reply.status for reply in replies[1::2]} == {404}


# What Java's own client, and curl when told so, say with every request.
WISHES = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("cut", [None, -20, 0, 1], ids=["at once", "in the head", "head", "body"])
def test_a_wish_for_another_protocol_is_declined(
    impatient: Service, upgrade: str, framing: str, cut: int | None
) -> None:
    hidden = request("/hidden", method="GET")
    head = request(GIVEN.path, headers=GIVEN.headers | WISHES | {"Upgrade": upgrade})
    if framing == "length":
        head = head.replace(b"Content-Length: 0", b"Content-Length: %d" % len(GIVEN.body))
        body, nonsense = GIVEN.body, hidden.ljust(len(GIVEN.body))
    else:
        head = head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        body, nonsense = (
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(each), each) for each in (GIVEN.body, hidden)
        )

    async def scenario() -> tuple[Reply, Reply, Reply]:
        async with wire(impatient.port) as connection:
            replies = []
            for whole in (head + body, head + nonsense):
                at = len(whole) if cut is None else len(head) + cut
                await connection.say(whole[:at])
                await asyncio.sleep(0.05)
                await connection.say(whole[at:])
                replies.append(await connection.reply())
            right, refused = replies
            return right, refused, await connection.ask(GIVEN.path, GIVEN.body, GIVEN.headers)

    right, refused, again = asyncio.run(scenario())
    assert GIVEN.fits(right)
    assert (refused.status, refused.slug) == (400, "malformed-body"), (
        "a body was taken for a request"
    )
    assert GIVEN.fits(again)


@pytest.mark.parametrize("wishes", [{}, WISHES], ids=["none", "wishes"])
def test_small_requests_are_answered_however_many_come_at_once(
    impatient: Service, wishes: dict[str, str]
) -> None:
    count = 3000
    asked = request("/livez", headers=wishes, method="GET") * count + WHOLE

    async def scenario() -> tuple[list[int], Reply]:
        async with wire(impatient.port) as connection:
            sending = asyncio.create_task(connection.say(asked))
            statuses = [(await connection.reply()).status for _ in range(count)]
            await sending
            return statuses, await connection.reply()

    statuses, last = asyncio.run(scenario())
    assert statuses == [200] * count
    assert GIVEN.fits(last)


def test_many_wishes_for_another_protocol_are_declined_in_order(impatient: Service) -> None:
    given = recorded(("msgpack",))[:20]
    whole = b"".join(request(each.path, each.body, each.headers | WISHES) for each in given)

    async def scenario() -> list[Reply]:
        async with wire(impatient.port) as connection:
            sending = asyncio.create_task(connection.say(whole))
            replies = [await connection.reply() for _ in given]
            await sending
            return replies

    replies = asyncio.run(scenario())
    assert all(each.fits(reply) for each, reply in zip(given, replies, strict=True))


def test_requests_of_one_id_are_two_requests(impatient: Service) -> None:
    given = recorded(("msgpack",))[:16]

    async def one(which: int) -> Reply:
        each = given[which]
        headers = each.headers | {"X-Request-Id": "twin"}
        return await ask(impatient.port, each.path, each.body, headers)

    async def scenario() -> list[Reply]:
        return await asyncio.gather(*(one(which) for which in range(len(given))))

    replies = asyncio.run(scenario())
    assert all(each.fits(reply) for each, reply in zip(given, replies, strict=True))
    assert {reply.headers["x-request-id"] for reply in replies} == {"twin"}


# ---- without end


async def chunks(connection: Wire) -> None:
    while True:
        await connection.say(b"10000\r\n" + b"\x80" * 0x10000 + b"\r\n")


async def trailers(connection: Wire) -> None:
    await connection.say(b"1\r\n\x80\r\n0\r\n")
    while True:
        await connection.say(b"X-A: b\r\n" * 1000)


async def extension(connection: Wire) -> None:
    await connection.say(b"1;")
    while True:
        await connection.say(b"a" * 0x10000)


@pytest.mark.parametrize(
    ("endless", "statuses"),
    [(chunks, {413}), (trailers, {400, 431}), (extension, {400, 431})],
    ids=["chunks", "trailers", "extension"],
)
def test_what_never_ends_is_cut(
    impatient: Service, endless: Callable[[Wire], Awaitable[None]], statuses: set[int]
) -> None:
    before = impatient.held()

    async def scenario() -> Reply:
        async with wire(impatient.port) as connection:
            await connection.say(CHUNKED)
            sending = asyncio.ensure_future(endless(connection))
            try:
                return await connection.reply()
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    for _ in range(4):
        try:
            assert asyncio.run(asyncio.wait_for(scenario(), 60)).status in statuses
        except Hung:
            pytest.fail("it was cut without a word")
    until(lambda: at_rest(impatient))
    until(lambda: impatient.held().rss - before.rss < 64 * MiB)


def test_a_body_in_chunks_of_a_byte_is_read_in_time(impatient: Service) -> None:
    body = GIVEN.body + b""
    small = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    spare = slack(impatient)

    async def scenario() -> Reply:
        async with wire(impatient.port) as connection:
            await connection.say(CHUNKED + small)
            return await connection.reply()

    started = time.monotonic()
    assert GIVEN.fits(asyncio.run(scenario()))
    seconds = time.monotonic() - started
    assert seconds < 1.5 + spare()
