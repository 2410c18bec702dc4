"""Nobody works for a client that has left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.types import Receive, Scope

from app.edge import GONE, ClientGone

T = TypeVar("T")


async def unless_gone(work: Awaitable[T], scope: Scope, receive: Receive) -> T:
    """Await the work, and cancel it if the client leaves meanwhile.

    Args:
        receive: the request's, its body read to the end.

    Raises:
        ClientGone: the client left, and the work has been cancelled.
    """
    this = asyncio.current_task()
    assert this is not None
    gone = over = False

    def leave(_: asyncio.Future[None]) -> None:
        nonlocal gone
        # What is due already is called, although it was removed meanwhile.
        if not over:
            gone = True
            this.cancel()

    # Under another server than ours, a task has to find out.
    watch = scope.get(GONE) or asyncio.create_task(_disconnected(receive))
    watch.add_done_callback(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if not gone:
            raise
        this.uncancel()
        raise ClientGone from None
    finally:
        over = True
        watch.remove_done_callback(leave)
        if GONE not in scope:
            watch.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
