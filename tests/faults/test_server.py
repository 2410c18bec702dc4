"""A server that is killed outright leaves nothing behind, and the next one starts as if new."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import urllib.request
from functools import partial
from pathlib import Path

import msgpack
import pytest

from benchmarks.stress.client import Reply, ask, request, wire
from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.service import Service, alive, kill, running, until
from benchmarks.stress.traffic import recorded
from tests.faults.work import for_a_worker


def leftovers() -> set[str]:
    """Everything in the places where a process could leave something of its own."""
    places = [Path("/dev/shm"), Path("/tmp")]
    names = {str(path) for place in places if place.is_dir() for path in place.iterdir()}
    # What other programs have there comes and goes; a browser's files, and pytest's, say whose they are.
    return {name for name in names if "convoke" in name or re.match(r"/dev/shm/(psm_|sem\.)", name)}


@pytest.mark.parametrize("stopped", [False, True], ids=["busy", "with workers stopped"])
def test_a_server_killed_under_load_leaves_nothing(stopped: bool) -> None:
    before = leftovers()

    async def scenario() -> Account:
        crowd = Crowd(service.port, recorded())
        load = asyncio.create_task(crowd.ask_while(8, lambda: True))
        async with asyncio.timeout(60):
            while crowd.account.right < 200:
                await asyncio.sleep(0.01)
        for pid in standing if stopped else []:
            kill(pid, signal.SIGSTOP)
        watched.extend(os.pidfd_open(pid) for pid in service.kill())
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        return crowd.account

    watched: list[int] = []
    with running("--workers", "2") as service:
        # Not one that starts under the load: stopped before Python runs in it, it has not asked to end with
        # the server (tests/app/test_early.py).
        standing = service.workers
        account = asyncio.run(scenario())
    assert len(watched) >= len(standing) >= 2
    for fd in watched:
        until(partial(_ended, fd))
        os.close(fd)
    assert not account.wrong
    assert leftovers() <= before


def _ended(pidfd: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_next_start_takes_the_same_address_and_answers() -> None:
    given = for_a_worker()
    with running("--workers", "1") as first:
        workers = first.kill()
        with running("--workers", "1", port=str(first.port)) as second:
            reply = asyncio.run(ask(second.port, given.path, given.body, given.headers))
            assert given.fits(reply)
        assert not any(alive(pid) for pid in workers)


def test_memory_of_large_bodies_is_given_back_when_nothing_is_asked() -> None:
    x = {"dtype": "float32", "shape": [1, 16, 600, 600], "data": bytes(23_040_000)}
    body = msgpack.packb({"x": x, "config": {"kernel": 2}})
    headers = {"Content-Type": "application/msgpack"}

    async def flood(service: Service) -> list[int]:
        asked = [ask(service.port, "/v1/max_pool/forward", body, headers) for _ in range(3)]
        return [reply.status for reply in await asyncio.gather(*asked)]

    with running("--workers", "1") as service:
        before = service.held().rss
        assert asyncio.run(flood(service)) == [200] * 3
        # Whoever asks whether it is well does not keep it from that.
        until(lambda: answers_livez(service) and service.held().rss - before < 16 << 20)


def answers_livez(service: Service) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/livez", timeout=10) as reply:
        return bool(reply.status == 200)


STAGES = ("idle", "new", "in its head", "in its body")


@pytest.fixture(scope="module")
def resumed() -> dict[str, Reply | BaseException]:
    """What each connection had from a server that was suspended while it was at that stage."""
    given = recorded()[0]
    whole = request(given.path, given.body, given.headers)
    sent = {"idle": 0, "new": 0, "in its head": 9, "in its body": len(whole) - 9}

    async def scenario(service: Service) -> dict[str, Reply | BaseException]:
        async with contextlib.AsyncExitStack() as stack:
            connections = {}
            for stage in STAGES:
                connection = await stack.enter_async_context(wire(service.port))
                if stage == "idle":
                    assert given.fits(await connection.ask(given.path, given.body, given.headers))
                await connection.say(whole[: sent[stage]])
                connections[stage] = connection
            # Who came before has been heard once who comes later is answered.
            assert (await ask(service.port, "/livez", method="GET")).status == 200
            kill(service.pid, signal.SIGSTOP)
            for stage, connection in connections.items():
                await connection.say(whole[sent[stage] :])
            await asyncio.sleep(3.5)  # each of the times would be over
            kill(service.pid, signal.SIGCONT)
            waiting = [connection.reply() for connection in connections.values()]
            replies = await asyncio.gather(*waiting, return_exceptions=True)
            return dict(zip(connections, replies, strict=True))

    with running(
        "--workers", "0", header_timeout_s="1", body_timeout_s="1", keep_alive_s="2"
    ) as service:
        return asyncio.run(scenario(service))


@pytest.mark.parametrize("stage", STAGES)
def test_what_comes_while_it_is_suspended_is_not_too_late(
    resumed: dict[str, Reply | BaseException], stage: str
) -> None:
    reply = resumed[stage]
    assert isinstance(reply, Reply), reply
    assert recorded()[0].fits(reply)


def test_an_orderly_end_leaves_nothing_either() -> None:
    before = leftovers()
    with running("--workers", "2") as service:
        workers = service.workers
        asyncio.run(Crowd(service.port, recorded()).ask(8, 80))
        assert service.terminate() == 0
    assert workers
    assert not any(alive(pid) for pid in workers)
    assert leftovers() <= before
