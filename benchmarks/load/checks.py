"""Whether answers are right: their status, their length, and now and then every byte."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgpack
import numpy as np

from benchmarks.load.connection import Reply
from benchmarks.load.streams import Request, unpack_tensors

EVERY = 16
"""Of so many answers one is compared byte for byte, the first of each body always."""

TAIL_BYTES = 512
"""Where the `info` of an answer is looked for."""

_INFO = b"\xa4info"


class WrongAnswer(Exception):
    """An answer that is not what the engine computes for the same request."""


@dataclass
class Checker:
    """Checks answers; one for each load.

    Attributes:
        echo: whether the server sends bodies back.
        batches: how many requests shared the call, of the answers that were looked at.
    """

    echo: bool
    batches: list[int] = field(default_factory=list)
    _seen: int = 0
    _tensors: dict[Request, bytes] = field(default_factory=dict)

    def check(self, request: Request, reply: Reply) -> None:
        """Compare a 200 with what it has to be.

        Raises:
            WrongAnswer: it differs.
        """
        self._seen += 1
        if self.echo:
            _equal("bytes", len(reply.body), len(request.body))
            if self._seen % EVERY == 1:
                _equal("the body", bytes(reply.body), request.body)
            return
        known = self._tensors.get(request)
        if known is None:
            known = self._tensors[request] = _first(request, reply.body)
        # The tensors lie between the head of the map and `info`, whose length may vary.
        end = 1 + len(known)
        rest = bytes(reply.body[end:])
        if len(reply.body) != end and not rest.startswith(_INFO):
            raise WrongAnswer(f"{request.path}: {len(reply.body)} bytes, tensors end at {end}")
        if self._seen % EVERY == 1:
            _equal("the tensors", reply.body[1:end], known)
            if rest:
                self.batches.append(msgpack.unpackb(rest[len(_INFO) :])["batch"]["requests"])


def _first(request: Request, body: memoryview) -> bytes:
    """Check every tensor of an answer; returns the part of the body that holds them."""
    tensors = unpack_tensors(body)
    _equal("the names", sorted(tensors), sorted(request.expected))
    for name, expected in request.expected.items():
        found = tensors[name]
        if found.dtype != expected.dtype or not np.array_equal(found, expected):
            raise WrongAnswer(f"{request.path}: {name} is not what the engine computes")
    tail = bytes(body[-TAIL_BYTES:])
    at = tail.rfind(_INFO)
    return bytes(body[1 : len(body) - len(tail) + at] if at >= 0 else body[1:])


def _equal(what: str, got: object, expected: object) -> None:
    if got != expected:
        shown = f"{got!r:.60} instead of {expected!r:.60}"
        raise WrongAnswer(f"{what} differ: {shown}")
