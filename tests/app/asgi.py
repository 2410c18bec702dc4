"""Speaks ASGI to an application without a server between, message by message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message

from app.main import create_app
from app.options import load


@dataclass
class Answer:
    """What came back."""

    messages: list[Message] = field(default_factory=list)

    @property
    def status(self) -> int:
        status: int = self.messages[0]["status"]
        return status

    @property
    def headers(self) -> dict[str, str]:
        return {k.decode(): v.decode() for k, v in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """A client whose body comes in pieces, and who stays or leaves after it.

    Attributes:
        gone: set it, and the client hangs up.
    """

    def __init__(self, pieces: Iterable[bytes] = (b"",)) -> None:
        self._pieces = list(pieces)
        self.gone = asyncio.Event()
        self.read = 0

    async def receive(self) -> Message:
        if self._pieces and not self.gone.is_set():
            piece = self._pieces.pop(0)
            self.read += len(piece)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self.gone.wait()
        return {"type": "http.disconnect"}


def scope_of(
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    address: str = "192.0.2.1",
) -> dict[str, Any]:
    """The scope of a request as uvicorn makes it."""
    pairs = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "headers": pairs,
        "client": (address, 5),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }


async def ask(
    app: ASGIApp,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | Client = b"",
    address: str = "192.0.2.1",
) -> Answer:
    """Send one request and collect the answer; announces the length of a body in one piece."""
    headers = dict(headers or {})
    if isinstance(body, bytes):
        headers.setdefault("content-length", str(len(body)))
    client = body if isinstance(body, Client) else Client([body])
    answer = Answer()

    async def send(message: Message) -> None:
        answer.messages.append(message)

    await app(scope_of(method, path, headers, address), client.receive, send)
    return answer


@asynccontextmanager
async def running(**settings: str) -> AsyncIterator[FastAPI]:
    """The whole application within this process, computing on a thread of it."""
    environ = {"CONVOKE_WORKERS": "0"}
    environ |= {f"CONVOKE_{name.upper()}": value for name, value in settings.items()}
    app = create_app(load(environ))
    async with app.router.lifespan_context(app):
        yield app
