"""A body whose like was decoded before is decoded to the same, sooner."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest

from app.errors import ServiceError
from app.wire import Decoder, Exchange, decode, forms, negotiate
from app.wire.lift import LIFTED_BYTES
from engine.errors import EngineError
from tests.app.limits import decode_limits

EXCHANGE = negotiate("application/msgpack", None, None)
LIMITS = decode_limits()
random = np.random.default_rng(3)


def packed(config: object = None, wants: object = None, **tensors: np.ndarray[Any, Any]) -> bytes:
    fields: dict[str, object] = {"config": config} if config is not None else {}
    fields |= {"wants": wants} if wants is not None else {}
    for name, array in tensors.items():
        data = array.tobytes()
        fields[name] = {"dtype": array.dtype.name, "shape": array.shape, "data": data}
    body: bytes = msgpack.packb(fields)
    return body


def noise(*shape: int) -> np.ndarray[Any, Any]:
    return random.standard_normal(shape, np.float32)


def conv() -> bytes:
    return packed({"padding": [1, 2]}, ["dx"], weight=noise(2, 3, 3, 3), x=noise(1, 3, 8, 8))


def outcome(read: Any) -> object:
    """What became of a body, in a form that compares."""
    try:
        request = read()
    except (ServiceError, EngineError) as error:
        return type(error), str(error)
    tensors = [
        (name, array.dtype, array.shape, array.tobytes(), array.flags.writeable)
        for name, array in request.tensors.items()
    ]
    return repr(request.config), request.wants, request.extra, tensors


def same(decoder: Decoder, body: Any, exchange: Exchange = EXCHANGE) -> bool:
    """Whether a decoder makes of a body what `decode` makes of it; tells if it knew the form."""
    known: list[object] = []

    def read() -> object:
        request, form = decoder.decode(body, exchange)
        known.append(form)
        return request

    assert outcome(read) == outcome(lambda: decode(body, exchange, LIMITS))
    return bool(known) and known[0] is not None


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_length_is_noted_then_its_form_is_learnt_then_it_is_known(kind: Any) -> None:
    decoder = Decoder(LIMITS)
    assert [same(decoder, kind(conv())) for _ in range(4)] == [False, False, True, True]


def test_large_data_is_viewed_and_small_data_is_aligned() -> None:
    decoder, large = Decoder(LIMITS), LIFTED_BYTES // 4
    bodies = [packed(x=noise(1, 1, large), weight=noise(1, 1, 3)) for _ in range(3)]
    request = [decoder.decode(body, EXCHANGE) for body in bodies][-1][0]
    assert np.shares_memory(request.tensors["x"], np.frombuffer(bodies[-1], np.uint8))
    assert request.tensors["weight"].flags.aligned
    assert not request.tensors["x"].flags.writeable


def test_a_byte_beside_the_data_makes_it_another_body() -> None:
    decoder = Decoder(LIMITS)
    for _ in range(3):
        same(decoder, conv())
    body, differing = conv(), 0
    for at in range(len(body)):
        for change in (1, 0x80):
            mutant = bytearray(body)
            mutant[at] ^= change
            differing += not same(decoder, bytes(mutant))
    data = 4 * (2 * 3 * 3 * 3 + 3 * 8 * 8)
    assert differing == 2 * (len(body) - data)
    for cut in range(1, 40):
        same(decoder, body[:-cut])
        same(decoder, body + bytes(cut))


def test_what_is_not_simply_somewhere_in_the_body_goes_the_long_way() -> None:
    swapped = {"dtype": ">f4", "shape": [1, 1, 2], "data": bytes(8)}
    binary = {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [1, 1, 2], b"data": bytes(8)}
    for fields in (
        {"x": swapped},
        {"x": binary},
        {"x": {"dtype": "float32", "shape": [0, 1, 2], "data": b""}},
        {"x": None},
        {"config": {"padding": list(range(500))}},
        {"surprise": 1},
        {"config": {"padding": b"1"}},
    ):
        decoder, body = Decoder(LIMITS), msgpack.packb(fields)
        assert [same(decoder, body) for _ in range(4)][-1] is (fields == {"x": None})
    text = negotiate("application/json", None, None)
    decoder = Decoder(LIMITS)
    assert not any(same(decoder, b'{"x": [[[1, 2]]]}', text) for _ in range(4))


def test_text_keys_of_the_other_encoding_are_known_too() -> None:
    tensor = {"nd": True, "type": "<f4", "kind": "", "shape": [1, 1, 2], "data": bytes(8)}
    decoder, body = Decoder(LIMITS), msgpack.packb({"x": tensor})
    assert [same(decoder, body) for _ in range(3)] == [False, False, True]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_FORMS", 6)
    monkeypatch.setattr(forms, "MOST_LENGTHS", 40)
    monkeypatch.setattr(forms, "MOST_MISSES", 50)
    decoder = Decoder(LIMITS)
    for number in range(300):
        body = packed({"padding": number % 90}, x=noise(1, 1, 1 + number // 6))
        same(decoder, body)
        kept = [len(each) for each in decoder._known.values()]
        assert len(kept) <= 40
        assert sum(kept) <= 6
        assert max(kept, default=0) <= forms.MOST_OF_A_LENGTH
    for width in range(1000, 1100):
        same(decoder, packed(x=noise(1, 1, width)))
        assert len(decoder._known) <= 40, "each length is new"


def test_forms_that_nobody_sends_any_more_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_MISSES", 20)
    decoder, x = Decoder(LIMITS), noise(1, 1, 3)
    for padding in range(1 + forms.MOST_OF_A_LENGTH):
        same(decoder, packed({"padding": padding}, x=x))
    new = packed({"padding": 9}, x=x)
    assert not same(decoder, new)
    assert any(same(decoder, new) for _ in range(20))


def test_it_tells_where_the_largest_tensor_of_a_known_form_begins() -> None:
    decoder = Decoder(LIMITS)
    body = packed(dy=noise(1, 4), x=noise(1, 3, 8, 8), weight=noise(2, 3))
    assert decoder.largest(len(body)) == 0, "nothing is known"
    for _ in range(2):
        decoder.decode(body, EXCHANGE)
    x = decode(body, EXCHANGE, LIMITS).tensors["x"].tobytes()
    assert decoder.largest(len(body)) == body.index(x)
    assert decoder.largest(len(body) + 1) == 0


def test_a_known_form_without_tensors_has_no_largest() -> None:
    decoder, body = Decoder(LIMITS), packed({"kernel": 2})
    for _ in range(2):
        decoder.decode(body, EXCHANGE)
    assert decoder.decode(body, EXCHANGE)[1] is not None
    assert decoder.largest(len(body)) == 0
