"""Exchanges and bodies that the tests of the wire share."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import strategies as st

from app.errors import MalformedBody, ServiceError
from app.wire import DecodeLimits, Request, decode, negotiate
from tests.app.limits import decode_limits

LIMITS = decode_limits()
MSGPACK = negotiate("application/vnd.msgpack", None)
NUMPY = negotiate("application/vnd.msgpack", "application/vnd.msgpack; tensors=msgpack-numpy")
JSON = negotiate("application/json", None)
BASE64 = negotiate("application/json", "application/json; tensors=base64")

# The contract's table, written out a second time.
NAMES = {
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "uint8": "u1",
    "int8": "i1",
    "int16": "i2",
    "int32": "i4",
    "int64": "i8",
}

HOSTILE_DTYPES: list[Any] = [
    "O", "|O", "object", "V", "V0", "V4", "|V8", "S", "S0", "S4", "U", "U1", "a4", "b1", "?", "bool",
    "c8", "c16", "complex64", "M8", "M8[s]", "m8[ns]", "datetime64", "f16", "float128", "g", "u2",
    "uint16", "uint32", "uint64", "u8", "bfloat16", "float", "int", "f", "d", "i", "B", "=f4", "!f4",
    "<<f4", "<", "", " f4", "f4 ", "F4", "Float32", "f4,f4", "(2,)f4", "3f4", "f4\0", "np.float32",
    "numpy.float32", "float32'", "i4, f4", None, True, 4, 4.0, ["f4"], [["a", "<f4"]], [["a", "O"]],
    {"names": ["a"], "formats": ["O"]},
]  # fmt: skip


def tensor(array: np.ndarray[Any, Any], **changes: Any) -> dict[str, Any]:
    """A tensor's map for msgpack, with some parts changed or, where `...`, left out."""
    parts = {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tobytes()}
    return {key: value for key, value in (parts | changes).items() if value is not ...}


def numpy_tensor(array: np.ndarray[Any, Any], **changes: Any) -> dict[bytes, Any]:
    """A tensor's map as msgpack-numpy makes it, with some parts changed."""
    parts = {
        "nd": True,
        "type": array.dtype.str,
        "kind": b"",
        "shape": list(array.shape),
        "data": array.tobytes(),
    }
    return {key.encode(): value for key, value in (parts | changes).items() if value is not ...}


def unpack(body: Any, limits: DecodeLimits = LIMITS) -> Request:
    """Decode a body given as bytes of msgpack, or as what msgpack should pack."""
    packed = body if isinstance(body, bytes | bytearray | memoryview) else msgpack.packb(body)
    return decode(packed, MSGPACK, limits)


def parse(body: Any, limits: DecodeLimits = LIMITS) -> Request:
    """Decode a body given as text or bytes of JSON, or as what JSON should write."""
    text = body if isinstance(body, bytes | str) else json.dumps(body)
    return decode(text.encode() if isinstance(text, str) else text, JSON, limits)


def refusal(
    read: Any,
    body: Any,
    limits: DecodeLimits = LIMITS,
    kind: type[ServiceError] = MalformedBody,
) -> Any:
    """The one issue for which a body is refused, by itself as malformed."""
    with pytest.raises(kind) as caught:
        read(body, limits)
    (issue,) = caught.value.issues
    assert caught.value.detail
    return issue


def endures(read: Any, body: bytes | str) -> None:
    """Assert that a body is read, or refused with a named error; nothing else happens."""
    with suppress(MalformedBody):
        assert all(array.dtype.name in NAMES for array in read(body).tensors.values())


def spoilt(good: bytes, signs: Iterable[int]) -> Iterator[bytes]:
    """A body cut anywhere, and with each of its bytes changed to, or put behind, another one."""
    for at in range(len(good)):
        yield good[:at]
        for sign in signs:
            yield good[:at] + bytes([sign]) + good[at + 1 :]
            yield good[:at] + bytes([sign]) + good[at:]


def values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and maps of leaves."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=12,
    )


def worded(value: Any) -> Any:
    """Nested lists with the texts of the contract for what is not finite."""
    if isinstance(value, list):
        return [worded(item) for item in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def nested(array: Any, **changes: Any) -> dict[str, Any]:
    """A tensor's map as `tensor` makes it, its numbers in nested lists."""
    return tensor(array, **{"data": worded(array.tolist())} | changes)


def flat(array: Any, **changes: Any) -> dict[str, Any]:
    """The same, in one list."""
    return tensor(array, **{"data": worded(array.ravel().tolist())} | changes)


def in_base64(array: Any, **changes: Any) -> dict[str, Any]:
    """The same, as bytes in base64."""
    return tensor(array, **{"data": base64.b64encode(array.tobytes()).decode()} | changes)


def x(**changes: Any) -> dict[str, Any]:
    """A body with one tensor, float32 of 2 by 2 unless told otherwise."""
    return {"x": nested(np.array([[1, 2], [3, 4]], np.float32), **changes)}


def value_of(body: Any) -> Any:
    return parse(body).tensors["x"]
