"""What comes back from the scribe is what the same function gives here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from app.errors import LimitExceeded, MalformedBody, ServiceError
from app.scribe.letters import (
    SHOWN_CHARACTERS,
    Letter,
    Reading,
    Writing,
    answer,
    reading_room,
    writing_room,
)
from app.wire import PlanRequest, Request, decode, decode_plan, encode
from app.workers.arena import Arena, MappedFile
from app.workers.channel import Unpacker, pack
from app.workers.protocol import check
from app.workers.task import EXHAUSTED, ComputeFailed, WorkerDied
from engine.errors import EngineError
from tests.app.limits import decode_limits
from tests.app.wire.bodies import BASE64, JSON, LIMITS
from tests.faults.hostile import JSON as JSON_TYPE
from tests.faults.hostile import REQUESTS
from tests.fuzz.decoding import corpus

BODIES = [
    b'{"x": [[[1, 2.5, "NaN"]]], "config": {"a": 1e999, "b": -0.0, "c": 1e-310, "d": null}}',
    b'{"x": [[]], "weight": null, "config": null, "wants": ["y", true, 1, 0.1], "other": 0}',
    b'{"config": {"n": %s1}, "z\xc3\xa9\\u0001": []}' % (b"9" * 2000),
    b'{"config": {"n": {"m": [[], {}, "\xf0\x9f\x8c\x8a", "\\n"]}}}',
    b'{"indices": [[[3]]], "dy": {"dtype": ">f8", "shape": [1], "data": "AAAAAAAA8D8="}}',
    b'{"x": {"dtype": "int64", "shape": [2], "data": [9223372036854775807, -1]}}',
    b'{"x": {"dtype": "float16", "shape": [0, 3], "data": []}}',
    b'{"x": [1, "%s"]}' % (b"a" * 9000),
    b'{"x": [1, "\\ud800"]}',
    b'{"x": {"dtype": "\\ud800", "shape": [1], "data": [1]}}',
    b'{"x": {"dtype": "f4", "shape": [1, 4611686018427387904], "data": [1]}}',
    b'{"x": [[1, 1e999]]}',
    b'{"config": {"\\ud800": 1}}',
    b'{"config": [1]}',
    b'{"shapes": {"x": [1, 2, 3], "weight": []}, "dtype": ">f8", "config": {"stride": 2}, "q": 1}',
    b'{"shapes": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9]}}',
    b'{"shapes": 3}',
    b"{" + b'"":' * 2000,
    b'{"x":' + b"[" * 100_000,
    b"\xff",
    b"[]",
]
"""Beside the corpus and the hostile requests: what JSON can say and messages could lose."""


@pytest.fixture(name="arena")
def _arena() -> Iterator[Arena]:
    arena = Arena(1 << 26, 1 << 12)
    yield arena
    arena.close()


def by_letter(letter: Letter, arena: Arena) -> Any:
    """Hand a letter over as the service does, but for the process."""
    arena.fit(letter.room)
    scribe = MappedFile(arena.fd)
    (message,) = Unpacker().feed(pack({**letter.put(arena), "size": arena.size}))
    (reply,) = Unpacker().feed(pack(answer(message, scribe)))
    check(reply)
    return letter.take(arena, reply)


def outcome(read: Callable[[], Any]) -> Any:
    """What reading gave, in a form in which nothing is equal but the same."""
    try:
        found = read()
    except (ServiceError, EngineError) as error:
        issues = [(i.loc, i.msg, i.expected, repr(i.got)[:4000]) for i in error.issues]
        return type(error), getattr(error, "detail", None), issues
    if isinstance(found, PlanRequest):
        return repr(found)
    assert isinstance(found, Request)
    tensors = [
        (name, a.dtype.str, a.shape, a.tobytes(), a.flags.writeable)
        for name, a in found.tensors.items()
    ]
    return repr((found.config, found.wants, found.extra)), tensors


def bodies() -> list[bytes]:
    hostile = (each.body for each in REQUESTS if each.media == JSON_TYPE)
    return [*BODIES, *hostile, *corpus("json")]


def test_every_body_is_read_as_it_is_here(arena: Arena) -> None:
    outcomes = set()
    for body in bodies():
        here = outcome(partial(decode, body, JSON, LIMITS))
        assert outcome(partial(by_letter, Reading(body, False, LIMITS), arena)) == here
        outcomes.add(here[0] if isinstance(here[0], type) else Request)
        here = outcome(partial(decode_plan, body, JSON, LIMITS))
        assert outcome(partial(by_letter, Reading(body, True, LIMITS), arena)) == here
        outcomes.add(here[0] if isinstance(here, tuple) else PlanRequest)
    assert len(outcomes) >= 5


def test_a_text_out_of_place_comes_back_shortened(arena: Arena) -> None:
    body = b'{"x": [1, "%s"]}' % (b"a" * 2 * SHOWN_CHARACTERS)
    with pytest.raises(MalformedBody) as refusal:
        by_letter(Reading(body, False, LIMITS), arena)
    assert [issue.got for issue in refusal.value.issues] == ["a" * SHOWN_CHARACTERS]


def test_the_limits_are_those_that_were_sent(arena: Arena) -> None:
    body = b'{"x": [[1, 2, 3]]}'
    by_letter(Reading(body, False, decode_limits(max_elements=3)), arena)
    with pytest.raises(LimitExceeded, match="too many numbers"):
        by_letter(Reading(body, False, decode_limits(max_elements=2)), arena)


GREEDY = [
    b'{"x": {"dtype": "f8", "shape": [%d], "data": [%s0]}}' % (200_001, b"0," * 200_000),
    b'{"x": {"dtype": "i8", "shape": [%d], "data": [%s0]}}' % (200_001, b"0," * 200_000),
    b'{"config": {"a": [%s0]}}' % (b"1e15," * 900),
    json.dumps({"config": {str(i): "é" * 1000 for i in range(500)}}, ensure_ascii=False).encode(),
    json.dumps({"config": {str(i): "🌊" * 900 for i in range(500)}}, ensure_ascii=False).encode(),
    json.dumps({"é" * 900 + str(i): 0 for i in range(500)}, ensure_ascii=False).encode(),
]


@pytest.mark.parametrize("body", GREEDY, ids=range(len(GREEDY)))
def test_there_is_room_for_what_any_body_becomes(body: bytes) -> None:
    room = reading_room(len(body))
    arena = Arena(room, 0)
    here = outcome(lambda: decode(body, JSON, LIMITS))
    assert not isinstance(here[0], type)
    assert outcome(lambda: by_letter(Reading(body, False, LIMITS), arena)) == here
    arena.close()


def odd(dtype: str, shape: tuple[int, ...]) -> Any:
    """The longest numbers of a type, and some that are no numbers."""
    if dtype == "int64":
        return np.full(shape, np.iinfo(np.int64).min)
    array = np.full(shape, -np.finfo(dtype).tiny, dtype)
    array.reshape(-1)[::3] = -np.inf
    array.reshape(-1)[1::5] = np.nan
    return array


@pytest.mark.parametrize("exchange", [JSON, BASE64], ids=["lists", "base64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (0, 2, 2), (7, 1, 1, 1, 1), (1, 1, 4001), (40_000, 1, 1)]
)
def test_an_answer_is_written_as_it_is_here(
    exchange: Any, dtype: str, shape: tuple[int, ...], arena: Arena
) -> None:
    tensors = {"y": odd(dtype, shape), "dx": odd(dtype, shape).swapaxes(0, 1)}
    info = {"operation": "conv", "padding": [[0, 1]], "batch": {"requests": 1, "rows": 2}}
    letter = Writing(tensors, info, exchange)
    assert bytes(by_letter(letter, arena)) == bytes(encode(tensors, info, exchange))
    numbers = sum(array.size for array in tensors.values())
    assert letter.room <= writing_room(numbers, len(shape))


def test_what_fails_is_told_and_the_next_letter_is_read(arena: Arena) -> None:
    arena.fit(1 << 12)
    failed = answer({"size": arena.size, "read": False, "text": 1, "limits": {"odd": 1}}, arena)
    with pytest.raises(ComputeFailed, match="odd"):
        check(failed)
    assert by_letter(Reading(b"{}", False, LIMITS), arena) == Request(None, {}, None, ())


def test_one_without_memory_is_as_good_as_dead(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("app.scribe.letters.decode", starved)
    with pytest.raises(WorkerDied, match=EXHAUSTED):
        by_letter(Reading(b"{}", False, LIMITS), arena)
