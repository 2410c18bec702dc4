"""Large bodies, received where workers read them: right in any number, and no burden afterwards."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import pytest

import engine
from app.workers.berths import BERTHS, BODY_BYTES
from benchmarks.stress.client import Reply, ask, request, wire
from benchmarks.stress.service import Service, kill, running, until
from benchmarks.stress.traffic import packed, tensors

MiB = 1 << 20
PATH = "/v1/avg_pool/"
CONFIG = {"kernel": 3, "stride": 2, "padding": 1}


def body(seed: int, action: str) -> tuple[bytes, dict[str, bytes]]:
    """A request whose `x` alone makes it large, with a length of its own, and the outputs it is to have."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((1, 16, 256, 257 + seed), np.float32)
    assert x.nbytes >= BODY_BYTES
    given = {"x": x}
    outputs = engine.forward("avg_pool", CONFIG, x=x)
    if action == "backward":
        given["dy"] = random.standard_normal(outputs["y"].shape, np.float32)
        outputs = engine.backward("avg_pool", CONFIG, None, **given)
    return packed(CONFIG, **given), {name: array.tobytes() for name, array in outputs.items()}


def outputs(reply: Reply) -> dict[str, bytes]:
    assert reply.status == 200, reply
    return {name: data for name, (_, _, data) in tensors(reply).items()}


@pytest.mark.parametrize("action", ["forward", "backward"])
def test_more_at_once_than_there_are_places_are_all_right(service: Service, action: str) -> None:
    given = [body(seed % 5, action) for seed in range(BERTHS + 4)]

    async def scenario() -> list[Reply]:
        # Every length comes thrice: unknown, then with a known form, in a place that is aligned for it.
        rounds = [[ask(service.port, PATH + action, sent) for sent, _ in given] for _ in range(3)]
        return [reply for each in rounds for reply in await asyncio.gather(*each)]

    replies = asyncio.run(scenario())
    assert [outputs(reply) for reply in replies] == [expected for _, expected in given] * 3


def test_answers_that_nobody_reads_are_not_written_over(service: Service) -> None:
    """More of them than workers have arenas to lend, while others go on being served."""
    given = [body(seed % 5, "backward") for seed in range(12)]

    async def scenario() -> list[Reply]:
        async with asyncio.TaskGroup() as group:
            slow = [group.create_task(late(sent, read)) for sent, _ in given]
            await asyncio.sleep(1.0)
            for sent, expected in given * 2:
                assert outputs(await ask(service.port, PATH + "backward", sent)) == expected
            read.set()
        return [task.result() for task in slow]

    async def late(sent: bytes, read: asyncio.Event) -> Reply:
        async with wire(service.port, receive_buffer=4096) as connection:
            await connection.say(request(PATH + "backward", sent))
            await read.wait()
            return await connection.reply()

    read = asyncio.Event()
    workers = service.workers
    replies = asyncio.run(scenario())
    assert [outputs(reply) for reply in replies] == [expected for _, expected in given]
    assert service.workers == workers, "none was left without an arena"


def test_an_answer_under_way_outlives_its_worker(service: Service) -> None:
    sent, expected = body(0, "backward")

    async def scenario() -> Reply:
        async with wire(service.port, receive_buffer=4096) as connection:
            await connection.say(request(PATH + "backward", sent))
            while not service.employed:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            for pid in service.workers:
                kill(pid)
            await asyncio.sleep(0.5)
            assert outputs(await ask(service.port, PATH + "backward", sent)) == expected
            return await connection.reply()

    assert outputs(asyncio.run(scenario())) == expected


def test_their_memory_is_given_back_whatever_became_of_them() -> None:
    given = [body(seed, "backward") for seed in range(8)]
    x = np.zeros((1, 16, 600, 600), np.float32)
    refused = packed({"kernel": 0}, x=x)

    async def scenario() -> None:
        asked = [ask(service.port, PATH + "backward", sent) for sent, _ in given * 3]
        replies = await asyncio.gather(*asked)
        assert service.held().memory - before > 64 * MiB, "it is kept for a while"
        for reply, (_, expected) in zip(replies, given * 3, strict=True):
            assert outputs(reply) == expected
        await asyncio.gather(*[cut() for _ in range(6)], *[refuse() for _ in range(6)])

    async def cut() -> None:
        async with wire(service.port) as connection:
            await connection.say(request(PATH + "forward", refused)[: len(refused) // 2])
            await asyncio.sleep(0.5)

    async def refuse() -> None:
        assert (await ask(service.port, PATH + "forward", refused)).status == 422

    async def wait_idle() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for sent, expected in given:
                connection = await stack.enter_async_context(wire(service.port))
                assert outputs(await connection.ask(PATH + "backward", sent)) == expected
            # What a worker has by itself stays: its arenas' part that is always kept, and its scratch.
            await asyncio.to_thread(until, lambda: service.held().memory - before < 100 * MiB)

    with running("--workers", "2") as service:
        before = service.held().memory
        asyncio.run(scenario())
        asyncio.run(wait_idle())
