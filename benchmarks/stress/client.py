"""A small HTTP/1.1 client over asyncio that hides nothing: each answer is one that was received."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"

LINE_BYTES = 256 << 10
"""Longest head of an answer."""


@dataclass(frozen=True)
class Reply:
    """One answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        """The problem that it explains."""
        return json.loads(self.body)

    @property
    def slug(self) -> str:
        """The kind of problem that it is."""
        return str(self.problem["type"]).removeprefix("/problems/")


class Hung(Exception):
    """The other side closed the connection before the answer was whole."""


class Wire:
    """One connection, kept alive."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, data: bytes) -> None:
        """Send bytes as they are; waits while the other side does not take them."""
        self._writer.write(data)
        await self._writer.drain()
        # While the other side takes all, that lets nobody else run, not even who reads its answer.
        await asyncio.sleep(0)

    async def reply(self) -> Reply:
        """Receive the next answer.

        Raises:
            Hung: there is none, or it is not whole.
        """
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            pairs = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Hung(str(error)) from None
        return Reply(int(first.split()[1]), headers, body)

    async def ask(
        self,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> Reply:
        """Send one request and receive its answer."""
        try:
            await self.say(request(path, body, headers, method))
        except ConnectionError as error:
            raise Hung(str(error)) from None
        return await self.reply()

    async def ended(self) -> bytes:
        """Everything that still comes until the other side closes the connection."""
        try:
            return await self._reader.read()
        except ConnectionError:
            return b""

    def abort(self) -> None:
        """Reset the connection."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection in order."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


def request(
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
) -> bytes:
    """All bytes of a request; msgpack unless the headers say otherwise."""
    fields = {
        "Host": "stress",
        "Content-Type": "application/vnd.msgpack",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


@asynccontextmanager
async def wire(
    port: int, address: str | None = None, *, receive_buffer: int | None = None
) -> AsyncIterator[Wire]:
    """A connection to a service on this machine.

    Args:
        address: that it comes from, where it matters.
        receive_buffer: bytes that are received ahead, where it shall be few.
    """
    limit = LINE_BYTES if receive_buffer is None else receive_buffer
    reader, writer = await asyncio.open_connection(
        HOST, port, limit=limit, local_addr=(address, 0) if address else None
    )
    made = Wire(reader, writer)
    try:
        yield made
    finally:
        await made.close()


async def ask(
    port: int,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
) -> Reply:
    """One request on a connection of its own."""
    async with wire(port) as made:
        return await made.ask(path, body, headers, method)
