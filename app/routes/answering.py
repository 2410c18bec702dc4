"""The answer of `forward` and `backward`, from its tensors to the messages that carry it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.types import Send

import engine
from app.jobs import Answer
from app.wire import Exchange, Piece, encode, pieces


def whole(call: engine.Call, exchange: Exchange, answer: Answer) -> bytes | memoryview:
    """The body as a copy of its tensors."""
    return encode(answer.tensors, info_of(call, answer), exchange)


def in_pieces(call: engine.Call, exchange: Exchange, answer: Answer) -> list[Piece]:
    """The body in pieces, of which the large ones are the tensors' own memory."""
    return pieces(answer.tensors, info_of(call, answer), exchange)


def info_of(call: engine.Call, answer: Answer) -> dict[str, Any]:
    """What is said of the computation beside its tensors."""
    return {**call.info(), "batch": {"requests": answer.requests, "rows": answer.rows}}


async def send_answer(send: Send, media_type: str, body: Sequence[Piece], size: int) -> None:
    """Send a body of `size` bytes in all."""
    headers = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(size).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    # The server takes the last message only once the client has taken most of the body.
    await send({"type": "http.response.body"})
