"""What the server and the scribe tell each other, and how it lies in their arena; both sides.

server → scribe     {"size", "read", "text", "limits"} | {"size", "write", "tensors", "info"}
scribe → server     {"tensors", "notes"} | {"notes"} | {"text"} | {"exhausted"} | {"failed"}

A body lies at the arena's beginning, what was made of it behind it: tensors as they are, and all else as
notes in JSON, since they may be larger than a message. JSON of ours keeps what JSON of clients can
say: integers of any size, floats by the digits of `repr`, halves of surrogate pairs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import app.errors
import engine.errors
from app.wire import Body, DecodeLimits, Exchange, PlanRequest, Request, decode, decode_plan, encode
from app.workers import protocol
from app.workers.arena import ALIGNMENT, MappedFile, Region, aligned, place
from app.workers.channel import Message

JSON = Exchange("json", "json", "application/json", "list")
"""A body is read as this one's, whatever its answer will be."""

GROWTH = 6
"""Bytes that are made of a byte of JSON at most: U+007F, one byte of text, becomes an escape of six. Two
of ``0,`` become the eight of a float64, those of ``é`` an escape of six."""

SLACK_BYTES = 64 << 10
"""For what a short body becomes, such as an error."""

NUMBER_BYTES = 26
"""The longest number, ``-2.2250738585072014e-308``, and a comma."""

LIST_BYTES = 3
"""Two brackets and a comma."""

SHOWN_CHARACTERS = 4096
"""Of a text that was found where none was expected, more than is told to anybody."""


@dataclass(frozen=True)
class Reading:
    """A body that is to be read.

    Attributes:
        plan: whether it is that of `plan`.
    """

    body: Body
    plan: bool
    limits: DecodeLimits

    @property
    def nbytes(self) -> int:
        """Bytes that are handed over."""
        return len(self.body)

    @property
    def room(self) -> int:
        """Bytes of arena that it takes."""
        return reading_room(len(self.body))

    def put(self, arena: MappedFile) -> Message:
        """Lay it down, and say what is to be done."""
        arena.view(_text(len(self.body)))[:] = np.frombuffer(self.body, np.uint8)
        return {"read": self.plan, "text": len(self.body), "limits": asdict(self.limits)}

    def take(self, arena: MappedFile, reply: Message) -> Request | PlanRequest:
        """What became of it, as copies.

        Raises:
            ServiceError, engine.EngineError: what reading it raised.
        """
        notes = json.loads(arena.view(Region.of(reply["notes"])).tobytes())
        if "error" in notes:
            raise _raised(notes)
        if self.plan:
            return _plan_request(notes)
        tensors = {}
        for region in map(Region.of, reply["tensors"]):
            tensors[region.name] = array = arena.view(region).copy()
            array.flags.writeable = False
        return Request(notes["config"], tensors, notes["wants"], tuple(notes["extra"]))


@dataclass(frozen=True)
class Writing:
    """An answer that is to be written."""

    tensors: dict[str, NDArray[Any]]
    info: dict[str, Any]
    exchange: Exchange

    @property
    def nbytes(self) -> int:
        """Bytes that are handed over."""
        return sum(array.nbytes for array in self.tensors.values())

    @property
    def room(self) -> int:
        """Bytes of arena that it takes."""
        _, end = self._placed()
        shapes = [array.shape for array in self.tensors.values()]
        return end + sum(map(_longest, shapes)) + SLACK_BYTES

    def put(self, arena: MappedFile) -> Message:
        """Lay it down, and say what is to be done."""
        regions, _ = self._placed()
        for region, array in zip(regions, self.tensors.values(), strict=True):
            arena.view(region)[...] = array
        return {"write": astuple(self.exchange), "tensors": regions, "info": self.info}

    def take(self, arena: MappedFile, reply: Message) -> memoryview:
        """The text, as a copy."""
        text: memoryview = arena.view(Region.of(reply["text"])).copy().data
        return text

    def _placed(self) -> tuple[list[Region], int]:
        return place([(n, a.dtype.str, a.shape) for n, a in self.tensors.items()])


Letter = Reading | Writing


def reading_room(text: int) -> int:
    """Bytes of arena that it takes to read a body of so many."""
    return ALIGNMENT + text * (1 + GROWTH) + SLACK_BYTES


def writing_room(numbers: int, rank: int) -> int:
    """Bytes of arena that it takes at most to write so many numbers in tensors of such a rank."""
    return numbers * (8 + NUMBER_BYTES + LIST_BYTES * rank) + 2 * SLACK_BYTES


def answer(message: Message, arena: MappedFile) -> Message:
    """Do what a message asks for; whatever goes wrong is an answer, too."""
    try:
        arena.remap(message["size"])
        return _read(message, arena) if "read" in message else _write(message, arena)
    except Exception as error:  # noqa: BLE001 - the server judges it; the scribe goes on
        return protocol.report(error)


def _read(message: Message, arena: MappedFile) -> Message:
    body = arena.view(_text(message["text"])).data
    limits = DecodeLimits(**message["limits"])
    end = ALIGNMENT + message["text"]
    try:
        if message["read"]:
            return {"notes": _noted(asdict(decode_plan(body, JSON, limits)), arena, end)}
        request = decode(body, JSON, limits)
    except (app.errors.ServiceError, engine.errors.EngineError) as error:
        return {"notes": _noted(_error(error), arena, end)}
    found = request.tensors
    regions, end = place([(n, a.dtype.str, a.shape) for n, a in found.items()], aligned(end))
    for region in regions:
        arena.view(region)[...] = found[region.name]
    notes = {"config": request.config, "wants": request.wants, "extra": request.extra}
    return {"tensors": regions, "notes": _noted(notes, arena, end)}


def _write(message: Message, arena: MappedFile) -> Message:
    regions = list(map(Region.of, message["tensors"]))
    tensors = {region.name: arena.view(region) for region in regions}
    text = encode(tensors, message["info"], Exchange(*message["write"]))
    _, end = place([(r.name, r.dtype, r.shape) for r in regions])
    return {"text": _laid(text, arena, end)}


def _noted(notes: dict[str, Any], arena: MappedFile, offset: int) -> Region:
    return _laid(json.dumps(notes).encode(), arena, offset)


def _laid(text: bytes | memoryview, arena: MappedFile, offset: int) -> Region:
    region = Region("", "|u1", (len(text),), aligned(offset))
    arena.view(region)[:] = np.frombuffer(text, np.uint8)
    return region


def _error(error: app.errors.ServiceError | engine.errors.EngineError) -> dict[str, Any]:
    return {
        "error": type(error).__name__,
        "detail": getattr(error, "detail", None),
        "issues": [(i.loc, i.msg, i.expected, _shown(i.got)) for i in error.issues],
    }


def _raised(notes: dict[str, Any]) -> Exception:
    issues = [engine.errors.Issue(tuple(loc), *rest) for loc, *rest in notes["issues"]]
    name = notes["error"]
    if notes["detail"] is None:
        refused: type[engine.errors.EngineError] = getattr(engine.errors, name)
        return refused(issues)
    failed: type[app.errors.ServiceError] = getattr(app.errors, name)
    return failed(notes["detail"], issues=issues)


def _shown(got: object) -> object:
    return got[:SHOWN_CHARACTERS] if isinstance(got, str) else got


def _plan_request(notes: dict[str, Any]) -> PlanRequest:
    shapes = {name: tuple(shape) for name, shape in notes["shapes"].items()}
    return PlanRequest(notes["config"], shapes, notes["dtype"], tuple(notes["extra"]))


def _text(size: int) -> Region:
    return Region("", "|u1", (size,), ALIGNMENT)


def _longest(shape: Sequence[int]) -> int:
    """Bytes of a tensor in nested lists at most."""
    lists = sum(prod(shape[:axis]) for axis in range(len(shape)))
    return prod(shape) * NUMBER_BYTES + lists * LIST_BYTES
