"""What tests that talk to a running service share: bodies, raw connections, metrics."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.load.streams import unpack_tensors
from benchmarks.stress.traffic import packed
from tests import metrics

COMMAND = (sys.executable, "-m", "app")
MSGPACK = {"Content-Type": "application/vnd.msgpack"}


def arrays(answer: httpx.Response) -> dict[str, NDArray[Any]]:
    """The tensors of an answer in msgpack."""
    assert answer.status_code == 200, answer.text
    return unpack_tensors(answer.content)


def noise(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def slow_body() -> bytes:
    """Some 24 GFLOP, which take a good while on any number of threads."""
    config = {"algorithm": "direct", "padding": 7}
    return packed(config, x=noise(1, 16, 160, 160), weight=noise(128, 16, 15, 15))


class Raw:
    """A connection on which anything can be said."""

    def __init__(self, url: str, buffer: int = 1 << 16) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.socket = socket.socket()
        self.socket.settimeout(60)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect((host, int(port)))
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[bytes, bytes]:
        """Head and body of one answer."""
        head = b"".join(iter(self._file.readline, b"\r\n"))
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None
        return head, self._file.read(int(length[1]))

    def rest(self) -> bytes:
        """Everything until the other side hangs up."""
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := self.socket.recv(1 << 16):
                received += piece
        return received


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer[9:12])


def metric(client: httpx.Client, series: str) -> float:
    return metrics.value(client.get("/metrics").text, series)
