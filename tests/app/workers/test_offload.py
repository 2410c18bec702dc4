"""Where copies are made."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from app.workers import offload
from app.workers.offload import OFFLOAD_BYTES, YIELD_BYTES, copying
from app.workers.turns import NICE
from engine.crew import Crew
from tests.starving import granting


def test_small_copies_are_made_at_once_and_large_ones_beside_the_loop() -> None:
    async def run() -> None:
        here = threading.get_ident()
        assert await copying(OFFLOAD_BYTES - 1, threading.get_ident) == here
        assert await copying(OFFLOAD_BYTES, threading.get_ident) != here

    asyncio.run(run())


def test_others_have_their_turn_between_copies_in_the_loop() -> None:
    async def run(nbytes: int) -> list[str]:
        order: list[str] = []
        asyncio.get_running_loop().call_soon(order.append, "another")
        for name in ("first", "second"):
            await copying(nbytes, lambda name=name: order.append(name))  # type: ignore[misc]
        return list(order)

    assert asyncio.run(run(YIELD_BYTES)) == ["first", "another", "second"]
    assert asyncio.run(run(YIELD_BYTES - 1)) == ["first", "second"]


def test_where_no_thread_can_be_had_large_copies_are_made_in_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        here = threading.get_ident()
        with monkeypatch.context() as patch, granting(0):
            patch.setattr(offload, "_threads", Crew(1, "test"))
            for _ in range(2):
                assert await copying(OFFLOAD_BYTES, threading.get_ident) == here
        assert await copying(OFFLOAD_BYTES, threading.get_ident) != here

    asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="only there do threads have a niceness")
def test_large_copies_yield_to_the_loop() -> None:
    async def run() -> None:
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        theirs = await copying(OFFLOAD_BYTES, lambda: os.getpriority(os.PRIO_PROCESS, 0))
        assert theirs == min(ours + NICE, 19)
        assert os.getpriority(os.PRIO_PROCESS, 0) == ours

    asyncio.run(run())
