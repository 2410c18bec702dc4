"""Work ends with the client that it is for, and that alone."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from app.edge import GONE, ClientGone
from app.routes.departure import unless_gone
from tests.app.dispatching import scenario


async def nothing_more() -> Message:
    """A `receive` whose client stays."""
    await asyncio.Event().wait()
    raise AssertionError


async def left() -> Message:
    """A `receive` whose client has gone."""
    return {"type": "http.disconnect"}


async def answer() -> int:
    await asyncio.sleep(0)
    return 7


@scenario
async def test_work_for_a_client_that_stays_is_done() -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert await unless_gone(answer(), {GONE: gone}, nothing_more) == 7
    assert await unless_gone(answer(), {}, nothing_more) == 7
    gone.set_result(None)  # later is no business of the work
    await asyncio.sleep(0)


@scenario
@pytest.mark.parametrize("own", [True, False], ids=["told by our server", "found out"])
async def test_a_client_that_leaves_cancels_it(own: bool) -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled: list[int] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    if own:
        asyncio.get_running_loop().call_soon(gone.set_result, None)
    with pytest.raises(ClientGone):
        await unless_gone(work(), {GONE: gone} if own else {}, nothing_more if own else left)
    assert cancelled
    this = asyncio.current_task()
    assert this is not None
    assert not this.cancelling(), "the request goes on, to be counted"


@scenario
async def test_whoever_else_cancels_it_is_obeyed() -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(unless_gone(asyncio.Event().wait(), {GONE: gone}, nothing_more))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@scenario
async def test_one_that_leaves_while_the_work_ends_cancels_nothing_that_comes_after() -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        gone.set_result(None)
        return 7

    assert await unless_gone(work(), {GONE: gone}, nothing_more) == 7
    await asyncio.sleep(0)
    this = asyncio.current_task()
    assert this is not None
    assert not this.cancelling()
