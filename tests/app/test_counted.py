"""Whose a small request is that is under way."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest
from starlette.types import Receive, Scope, Send

from tests.app.connecting import connected

NETWORK = "203.0.113.9"
KEY = b"Authorization: Bearer second\r\n"


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        (KEY, "key-2"),
        (b"", NETWORK),
        (b"Authorization: Bearer third\r\n", NETWORK),
        (b"Authorization: Basic second\r\n", NETWORK),
        (2 * KEY, NETWORK),
    ],
    ids=["a key of ours", "none", "another", "not a key", "two"],
)
def test_it_is_that_of_a_key_else_of_the_network(headers: bytes, caller: str) -> None:
    assert _caller(headers, keys=("first", "second")) == caller


def test_without_keys_it_is_that_of_the_network() -> None:
    assert _caller(KEY, keys=()) == NETWORK


def _caller(headers: bytes, keys: tuple[str, ...]) -> str:
    """Whose a request with these headers is."""

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        pytest.fail("it was to wait")

    async def scenario() -> str:
        connection, _ = connected(app, api_keys=keys)
        connection.network = NETWORK
        connection.few = few = Mock()
        connection.starts = starts = Mock(**{"may.return_value": False})
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n%b\r\n" % headers
        connection.data_received(head + b"1")
        (by_few,), (by_starts,) = few.enter.call_args.args[2:], starts.may.call_args.args
        assert by_few == by_starts
        return str(by_few)

    return asyncio.run(scenario())
