"""What the system tells of a connection."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any
from unittest.mock import Mock

import pytest

from app.transport import has_hung_up, unread_bytes
from benchmarks.stress.service import until
from tests.app.connecting import Transport


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("unread", [b"", b"0123456789"])
def test_a_client_has_hung_up_whatever_is_unread(unread: bytes, reset: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    with ours:
        transport: Any = Mock(get_extra_info=lambda _: ours, is_closing=lambda: False)
        client.sendall(unread)
        until(lambda: unread_bytes(transport) == len(unread))
        assert not has_hung_up(transport)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        until(lambda: has_hung_up(transport), 10)


def test_of_a_connection_that_is_closed_nothing_is_asked() -> None:
    transport = Transport()
    transport.client.close()
    transport.close()
    assert not has_hung_up(transport)
