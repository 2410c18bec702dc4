"""A body comes to the same on every way that the service has to read it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from app.errors import MalformedBody
from app.wire import DecodeLimits, Decoder, Exchange, decode, read_msgpack
from tests.fuzz.outcomes import LIMITS, REFUSALS, comparable, outcome

SMALL_VIEWS = 48
"""From so many bytes on, a binary value is lifted: no body here has one that the service would lift."""

LIFTING = replace(LIMITS, view_bytes=SMALL_VIEWS)

LIFTED_KEY = "this is not msgpack as it is read here: it has a map whose keys are not text"

TIGHT = DecodeLimits(
    max_rank=4,
    max_elements=64,
    max_lists=32,
    max_values=48,
    max_depth=3,
    max_text=16,
    view_bytes=SMALL_VIEWS,
)


def usually(body: bytes | bytearray, exchange: Exchange) -> list[object]:
    """What a body comes to with nothing but the usual limits."""
    return outcome(lambda: decode(body, exchange, LIMITS))


def check_lifted(body: bytes) -> None:
    """Whether binary values of a body in msgpack are lifted changes neither value nor refusal."""
    lifted = outcome(lambda: read_msgpack.load(body, LIFTING))
    copied = outcome(lambda: read_msgpack.load(body, LIMITS))
    # A binary key is refused both ways; lifted, it is by the unpacker, sooner and in other words.
    binary_key = LIFTED_KEY in lifted and copied[0] == MalformedBody.__name__
    assert lifted == copied or binary_key, "lifted, it is another"


def check_tight(body: bytes, exchange: Exchange, usual: list[object]) -> None:
    """What tight limits let through is read as with the usual ones."""
    try:
        request = decode(body, exchange, TIGHT)
    except REFUSALS:
        return
    assert comparable(request) == usual, "with tight limits it is another"


def check_known(body: bytes, origin: bytes, exchange: Exchange, usual: list[object]) -> None:
    """The form of the body from which this one was made does not rub off on it."""
    # A form is of one length.
    if len(body) == len(origin):
        assert _read(_knowing(origin, exchange), body, exchange) == usual, "its origin shows"


def check_edges(body: bytes, exchange: Exchange) -> None:
    """Nor does a body's form on one that differs from it in a byte where its tensors' data begin or end."""
    decoder, form = Decoder(LIMITS), None
    with suppress(*REFUSALS):
        for _ in range(3):  # its length is noted, its form learnt, and known
            _, form = decoder.decode(body, exchange)
    if form is None:
        return
    spans = [(0, len(body)), *((start, end) for _, start, end, *_ in form.data)]
    for at in sorted({at for start, end in spans for at in (start - 1, start, end - 1, end)}):
        if 0 <= at < len(body):
            flipped = bytearray(body)
            flipped[at] ^= 1 << at % 8
            assert _read(decoder, flipped, exchange) == usually(flipped, exchange), (
                f"flipped at {at}"
            )


@lru_cache(1024)
def _knowing(body: bytes, exchange: Exchange) -> Decoder:
    """A decoder that knows the form of a body, where it has one."""
    decoder = Decoder(LIMITS)
    for _ in range(2):  # its length is noted, and its form learnt
        _read(decoder, body, exchange)
    return decoder


def _read(decoder: Decoder, body: bytes | bytearray, exchange: Exchange) -> list[object]:
    return outcome(lambda: decoder.decode(body, exchange)[0])
