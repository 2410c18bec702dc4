"""Workers that are killed, stopped or starved under load cost nobody an answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from app.files import least_files
from app.places import LEAVING_CONNECTIONS
from app.scribe.desks import LARGE_BYTES
from app.settings import Settings
from app.workers.berths import BERTHS, BODY_BYTES
from app.workers.process import ARENAS
from benchmarks.stress.client import Reply, ask, wire
from benchmarks.stress.crowd import Account, Crowd
from benchmarks.stress.service import Held, Service, alive, kill, running, starve, until
from benchmarks.stress.traffic import large, packed, recorded
from tests.faults.pace import start_s
from tests.faults.work import for_a_worker

CLIENTS = 24
DEATHS = 4
"""So many workers are harmed under load, one after the other."""

RECOVERY_S = 2.0
"""On a machine where all workers together take a quarter of a second to start."""

PATIENCE_S = 60.0
"""For what has no bound, but is to happen."""

SIDES = 2
"""The server and a worker map each of the worker's arenas, and all of them each berth."""

HARMS: dict[str, Callable[[int], None]] = {
    "killed": kill,
    "stopped": lambda pid: kill(pid, signal.SIGSTOP),
    "starved": starve,
    "crashed": lambda pid: kill(pid, signal.SIGSEGV),
}


@pytest.fixture(scope="module", autouse=True)
def size(service: Service) -> int:
    """How many worker processes the service has.

    Counted before any test has harmed one: while it is being replaced, there is one less.
    """
    return len(service.workers)


@pytest.fixture
def recovers(size: int) -> Callable[[float], bool]:
    """Whether a service that takes so long is as before in time, on this machine as it is meanwhile."""

    def allowed() -> float:
        return max(RECOVERY_S, RECOVERY_S - 0.25 + 2 * start_s(size))

    before = allowed()
    return lambda seconds: seconds < before or seconds < allowed()


@pytest.fixture(scope="module", autouse=True)
def full(service: Service, size: int) -> Held:
    """What the service may hold when no client is left; looked at as early, for the same reason."""

    def all_employed() -> bool:
        asyncio.run(work_for_all(service, size))
        return len(service.employed) == size

    def without_clients() -> bool:
        return service.connections() == 0

    until(all_employed, PATIENCE_S)
    until(without_clients, PATIENCE_S)
    held = service.held()
    return replace(held, mappings=SIDES * ARENAS * size + (1 + size) * BERTHS)


async def work_for_all(service: Service, size: int) -> None:
    """Give every worker something to do."""
    await asyncio.gather(
        Crowd(service.port, recorded()).ask(CLIENTS, 160),
        *(ask(service.port, "/v1/conv/forward", large(0.1)) for _ in range(2 * size)),
    )


def no_more(now: Held, before: Held) -> bool:
    """Whether nothing has been left lying about."""
    return (
        now.processes == before.processes
        and now.files <= before.files
        and now.mappings <= before.mappings
    )


async def loaded(service: Service, how: str) -> Account:
    """Load a service while its workers are harmed in turn."""
    crowd, harmed = Crowd(service.port, recorded()), set[int]()

    async def at_work() -> list[int]:
        """Those that have computed something, once much has been answered since the last was harmed.

        After some time, on a slow machine, its successor would not have done anything.
        """
        answers = crowd.account.asked + 2 * CLIENTS
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await asyncio.sleep(0.02)
                # Who starves may do without what it does not get.
                pids = [pid for pid in service.employed if how == "starved" or pid not in harmed]
                if pids and crowd.account.asked >= answers:
                    return pids

    async def harming() -> None:
        for turn in range(DEATHS):
            pids = await at_work()
            pid = pids[turn % len(pids)]
            harmed.add(pid)
            HARMS[how](pid)
        await at_work()

    task = asyncio.create_task(harming())
    account = await crowd.ask_while(CLIENTS, lambda: not task.done())
    await task
    return account


def first_right_answer(service: Service) -> float:
    """Seconds until a request that needs a worker is answered as it should be."""
    given = for_a_worker()
    started = time.monotonic()
    reply = asyncio.run(ask(service.port, given.path, given.body, given.headers))
    assert given.fits(reply), reply
    return time.monotonic() - started


# A crash speaks against the request that was being computed; nobody else makes one happen by signal.
@pytest.mark.parametrize("how", ["killed", "stopped", "starved"])
def test_every_request_is_answered_right_while_workers_are(
    service: Service, recovers: Callable[[float], bool], how: str
) -> None:
    first_right_answer(service)
    undisturbed = asyncio.run(Crowd(service.port, recorded()).ask(CLIENTS, 2 * CLIENTS))
    account = asyncio.run(loaded(service, how))
    assert account.only_right(), account
    assert account.right > CLIENTS
    # Those who waited with it are still answered one after the other, slowly beside other programs.
    assert recovers(account.slowest - 2 * undisturbed.slowest)


@pytest.mark.parametrize("how", HARMS)
def test_within_two_seconds_it_is_as_before_when_all_workers_were(
    service: Service, recovers: Callable[[float], bool], size: int, full: Held, how: str
) -> None:
    until(lambda: len(service.workers) == size, PATIENCE_S)
    workers = service.workers
    for pid in workers:
        HARMS[how](pid)
    if how == "crashed":  # a crash under a request speaks against it, and this one is innocent
        until(lambda: not any(alive(pid) for pid in workers), PATIENCE_S)
    assert recovers(first_right_answer(service))
    while how != "starved" and any(alive(pid) for pid in workers):  # noticed when they get work
        asyncio.run(work_for_all(service, size))
    assert recovers(until(lambda: len(service.workers) == size, PATIENCE_S))
    # Not at once: a worker that is being started has, for a moment, all the files of the server.
    until(lambda: no_more(service.held(), full), PATIENCE_S)


def test_a_crowd_of_connections_leaves_room_for_new_workers(
    recovers: Callable[[float], bool],
) -> None:
    """Where a process has few files by itself, as on most systems."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = 128
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        with running("--workers", "1", max_connections=str(few)) as service:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            workers = service.workers
            with contextlib.ExitStack() as crowd:
                for _ in range(few - 2):
                    address = ("127.0.0.1", service.port)
                    crowd.enter_context(socket.create_connection(address, timeout=5))
                first_right_answer(service)
                for pid in workers:
                    kill(pid)
                assert recovers(first_right_answer(service))
                assert recovers(until(lambda: len(service.workers) == len(workers), PATIENCE_S))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_with_the_least_files_that_it_starts_with_work_of_every_kind_is_done() -> None:
    few = least_files(Settings(workers=2))
    ones = np.ones((1, 1, 1200, 1200), np.float32)
    as_json = json.dumps({"x": np.ones((1, 1, 20_000)).tolist(), "config": {"kernel": 2}}).encode()
    assert len(as_json) >= LARGE_BYTES
    assert ones.nbytes >= BODY_BYTES

    async def work(port: int) -> None:
        assert (await Crowd(port, recorded()).ask(1, len(recorded()))).only_right()
        in_place = await ask(port, "/v1/max_pool/forward", packed({"kernel": 2}, x=ones))
        by_a_scribe = await ask(
            port, "/v1/max_pool/forward", as_json, {"Content-Type": "application/json"}
        )
        assert (in_place.status, by_a_scribe.status) == (200, 200)

    with running("--workers", "2") as service:
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (few, few))
        for _ in range(2):
            for pid in service.children:
                kill(pid)
            asyncio.run(work(service.port))


def test_with_the_least_files_workers_are_replaced_beside_a_crowd_that_is_refused() -> None:
    few, path = least_files(Settings(workers=2)), "/v1/max_pool/forward"
    ones = packed({"kernel": 2}, x=np.ones((1, 1, 400, 400), np.float32))

    async def come(port: int) -> None:
        """One after the other, each of which is held for as long as one may read its refusal."""
        with contextlib.ExitStack() as crowd:
            while True:
                with contextlib.suppress(OSError):
                    address = ("127.0.0.1", port)
                    crowd.enter_context(socket.create_connection(address, timeout=5))
                await asyncio.sleep(0.005)

    async def scenario(service: Service, size: int) -> None:
        async with wire(service.port) as connection:
            crowd = asyncio.create_task(come(service.port))
            async with asyncio.timeout(PATIENCE_S):
                while service.connections() <= LEAVING_CONNECTIONS:
                    await asyncio.sleep(0.01)
                for pid in service.children:
                    kill(pid)
                assert (await connection.ask(path, ones)).status == 200
                while len(service.workers) < size:
                    await asyncio.sleep(0.01)
            crowd.cancel()

    # The one that is let in says nothing until the crowd is there.
    settings = {"max_connections": "1", "header_timeout_s": str(PATIENCE_S)}
    with running("--workers", "2", **settings) as service:
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (few, few))
        asyncio.run(scenario(service, len(service.workers)))
        assert "could not be started" not in service.log()


def test_long_work_survives_a_death_and_is_answered_once(service: Service) -> None:
    body = large(2.0)

    async def scenario() -> tuple[Reply, Reply]:
        undisturbed = await ask(service.port, "/v1/conv/forward", body)
        async with wire(service.port) as connection:
            asked = asyncio.create_task(connection.ask("/v1/conv/forward", body))
            await asyncio.sleep(0.2)
            for pid in service.workers:
                kill(pid)
            reply = await asked
            # Nothing more comes: what follows on the connection is the next answer.
            again = await connection.ask("/v1/conv/nothing")
            assert again.status == 404
            return undisturbed, reply

    undisturbed, reply = asyncio.run(scenario())
    assert undisturbed.status == reply.status == 200
    assert undisturbed.body[:-200] == reply.body[:-200]


def test_a_request_whose_workers_all_die_is_answered_with_a_named_problem(service: Service) -> None:
    """As one that kills them would be; nobody could tell the difference."""

    async def scenario() -> Reply:
        asked = asyncio.create_task(ask(service.port, "/v1/conv/forward", large(200.0)))
        while not asked.done():
            await asyncio.sleep(0.05)
            for pid in service.employed:
                kill(pid)
        return await asked

    reply = asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert (reply.status, reply.slug) == (500, "worker-crashed")
    first_right_answer(service)
