"""The answer of `forward` and `backward`, from its tensors to the messages that carry it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from starlette.types import Send

import engine
from app.errors import LimitExceeded
from app.incoming import SLICE_BYTES
from app.jobs import Answer
from app.wire import Exchange, Piece, encode, pieces

GROWTH = {"list": 8, "base64": 2}
"""How many times as long as their bytes tensors are in JSON, at most but for the odd number."""


def whole(call: engine.Call, exchange: Exchange, answer: Answer) -> bytes | memoryview:
    """The body as a copy of its tensors."""
    return encode(answer.tensors, info_of(call, answer), exchange)


def in_pieces(call: engine.Call, exchange: Exchange, answer: Answer) -> list[Piece]:
    """The body in pieces, of which the large ones are the tensors' own memory."""
    return pieces(answer.tensors, info_of(call, answer), exchange)


def info_of(call: engine.Call, answer: Answer) -> dict[str, Any]:
    """What is said of the computation beside its tensors."""
    return {**call.info(), "batch": {"requests": answer.requests, "rows": answer.rows}}


def about(nbytes: int, exchange: Exchange) -> int:
    """How large an answer of so many bytes of tensors will be, at most."""
    return nbytes * GROWTH.get(exchange.tensors, 1)


def listed(call: engine.Call, samples: int, most: int) -> int:
    """Numbers of an answer in lists.

    Raises:
        LimitExceeded: they are more than `most`, and would take seconds to write.
    """
    numbers = sum(prod(spec.shape) for spec in call.outputs((samples,)).values())
    if numbers > most:
        raise LimitExceeded.at(
            ("cost", "json_numbers"),
            "too many numbers for lists in JSON; tensors=base64 or msgpack can carry them",
            f"at most {most}",
            numbers,
        )
    return numbers


async def send_answer(send: Send, media_type: str, body: Sequence[Piece], size: int) -> None:
    """Send a body of `size` bytes in all."""
    headers = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(size).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in body:
        for part in _slices(piece):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if part is not piece:
                # The system may take all of it at once, for which nobody else has to wait.
                await asyncio.sleep(0)
    # The server takes the last message, and then the next request, once the client has most of the body.
    await send({"type": "http.response.body"})


def _slices(piece: Piece) -> Iterator[Piece]:
    """A piece in parts of which each is sent in one turn of the event loop."""
    if len(piece) <= SLICE_BYTES:
        yield piece
        return
    for start in range(0, len(piece), SLICE_BYTES):
        yield piece[start : start + SLICE_BYTES]
