"""Bodies read once more by the plainest means, with nothing of the service's decoder."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import chain
from math import prod
from typing import Any, NoReturn

import msgpack
import numpy as np
from numpy.typing import NDArray

from app.wire import Request
from tests.fuzz.outcomes import comparable

NAMES = ("x", "weight", "bias", "indices", "dy")


def check_request(request: Request, body: bytes, form: str) -> None:
    """A body that was decoded says what the request does, and each of its keys once."""
    if form == "msgpack":
        given = msgpack.unpackb(body, strict_map_key=False, object_pairs_hook=_once)
    else:
        given = json.loads(body, object_pairs_hook=_once, parse_constant=_refuse)
    arrays = {
        name: _array(given.pop(name), np.dtype(np.int64 if name == "indices" else np.float32))
        for name in NAMES
        if given.get(name) is not None
    }
    assert arrays.keys() == request.tensors.keys()
    for name, array in arrays.items():
        read = request.tensors[name]
        assert (read.dtype, read.shape) == (array.dtype, array.shape), name
        assert read.tobytes() == array.tobytes(), name
        assert not read.flags.writeable, name
    for name in ("config", "wants"):
        assert comparable(given.pop(name, None)) == comparable(getattr(request, name)), name
    assert set(request.extra) == given.keys() - set(NAMES)


def _once(pairs: list[tuple[str | bytes, object]]) -> dict[str, object]:
    found = {key.decode() if isinstance(key, bytes) else key: value for key, value in pairs}
    assert len(found) == len(pairs), "a key stands twice in a map"
    return found


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


def _array(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A tensor in native byte order; of `dtype` where it is a bare list."""
    if isinstance(value, list):
        return _filled(value, dtype, tuple(_lengths(value)))
    spelling = value["type"] if "nd" in value else value["dtype"]
    dtype = np.dtype(spelling.decode() if isinstance(spelling, bytes) else spelling)
    shape, data = tuple(value["shape"]), value["data"]
    if isinstance(data, list):
        nested = tuple(_lengths(data))
        # Below an axis of length 0, lists say nothing.
        assert nested in (shape, (prod(shape),)) or (
            not prod(shape) and nested == shape[: len(nested)]
        )
        return _filled(data, dtype.newbyteorder("="), shape)
    raw = base64.b64decode(data, validate=True) if isinstance(data, str) else data
    return np.frombuffer(raw, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _filled(data: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array into which numbers are put one by one, as they come in the lists."""
    array = np.empty(prod(shape), dtype)
    items = list(_items(data))
    assert len(items) == array.size
    for at, item in enumerate(items):
        array[at] = float(item) if isinstance(item, str) else item
    return array.reshape(shape)


def _lengths(value: Any) -> Iterator[int]:
    while isinstance(value, list):
        yield len(value)
        value = value[0] if value else None


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        return chain.from_iterable(map(_items, value))
    return iter((value,))
