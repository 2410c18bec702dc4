"""Answers on their way out: every byte in order, and a turn for others between the parts of a large one."""

from __future__ import annotations

import asyncio

from starlette.types import Message

from app.incoming import SLICE_BYTES
from app.routes.answering import send_answer
from tests.app.dispatching import scenario


async def _sent(*body: bytes) -> tuple[list[Message], list[int]]:
    """The messages of an answer, and in which turn of the loop each was sent."""
    messages: list[Message] = []
    turns: list[int] = []
    turn = 0
    again: asyncio.Handle

    def count() -> None:
        nonlocal turn, again
        turn += 1
        again = asyncio.get_running_loop().call_soon(count)

    async def send(message: Message) -> None:
        messages.append(message)
        turns.append(turn)

    again = asyncio.get_running_loop().call_soon(count)
    await send_answer(
        send, "text/plain", [memoryview(piece) for piece in body], sum(map(len, body))
    )
    again.cancel()
    return messages, turns


@scenario
async def test_a_large_answer_is_sent_in_parts_with_a_turn_for_others_after_each() -> None:
    large = bytes(range(256)) * (SLICE_BYTES // 128) + b"end"
    messages, turns = await _sent(b"head", large, b"tail")
    parts = [message["body"] for message in messages[1:-1]]
    assert b"".join(parts) == b"head" + large + b"tail"
    assert list(map(len, parts)) == [4, SLICE_BYTES, SLICE_BYTES, 3, 4]
    assert turns == [0, 0, 0, 1, 2, 3, 3]
    assert messages[0]["headers"][1] == (b"content-length", str(len(large) + 8).encode())


@scenario
async def test_what_is_not_large_is_sent_at_once() -> None:
    messages, turns = await _sent(b"head", bytes(SLICE_BYTES), b"")
    assert list(map(len, (message["body"] for message in messages[1:-1]))) == [4, SLICE_BYTES, 0]
    assert not any(turns)
    assert messages[-1] == {"type": "http.response.body"}
