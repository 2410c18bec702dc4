"""Results → bodies, each in pieces that are joined once, or sent as they are.

A piece of tensor data is a view on the array, so the join is its only copy (an array that is not
row-major is made so first).
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgpack
import numpy as np
import orjson

from app.wire.elements import Array
from app.wire.negotiation import Exchange, TensorForm
from engine.resolve import dtype_name

Piece = bytes | memoryview

PIECE_BYTES: Final = 64 << 10
"""A piece of fewer bytes is copied sooner than sent by itself."""

UNLOCKED_BYTES: Final = 1 << 20
"""From so many on, a body's copy would keep other threads waiting."""

BASE64_BYTES: Final = 192 << 10
"""So many, a multiple of 3, become base64 at once: other threads wait for a fifth of a millisecond."""


def encode(outputs: Mapping[str, Array], info: Mapping[str, object], exchange: Exchange) -> Piece:
    """Write an answer: the tensors by name, then `info`, which is plain.

    Raises:
        OverflowError: msgpack cannot hold a tensor of 4 GiB or more.
    """
    return _joined(list(_written(outputs, info, exchange)))


def pieces(
    outputs: Mapping[str, Array], info: Mapping[str, object], exchange: Exchange
) -> list[Piece]:
    """The same answer in a few pieces; in msgpack, large ones are the tensors' own memory.

    Raises:
        OverflowError: see `encode`.
    """
    found: list[Piece] = []
    small: list[Piece] = []
    for piece in _written(outputs, info, exchange):
        if len(piece) < PIECE_BYTES:
            small.append(piece)
        else:
            found += [b"".join(small), piece]
            small = []
    return [*found, b"".join(small)]


def _written(
    outputs: Mapping[str, Array], info: Mapping[str, object], exchange: Exchange
) -> Iterator[Piece]:
    write = _msgpack_body if exchange.response == "msgpack" else _json_body
    return write(outputs, info, _TENSORS[exchange.tensors])


def _joined(parts: list[Piece]) -> Piece:
    """Join pieces; large ones without the interpreter's lock, which `bytes.join` keeps."""
    total = sum(map(len, parts))
    if total < UNLOCKED_BYTES:
        return b"".join(parts)
    body = rest = np.empty(total, np.uint8)
    for piece in filter(len, parts):
        np.copyto(rest[: len(piece)], np.frombuffer(piece, np.uint8))
        rest = rest[len(piece) :]
    return body.data


def encode_map(plain: Mapping[str, object], exchange: Exchange) -> bytes:
    """Write a plain map without tensors."""
    return _pack(plain) if exchange.response == "msgpack" else _text(plain)


def _msgpack_body(
    outputs: Mapping[str, Array], info: Mapping[str, object], tensor: _Tensor
) -> Iterator[Piece]:
    yield _map_header(len(outputs) + 1)
    for name, array in outputs.items():
        yield _name(name)
        yield from tensor(_row_major(array))
    yield _name("info")
    yield _pack(info)


def _json_body(
    outputs: Mapping[str, Array], info: Mapping[str, object], tensor: _Tensor
) -> Iterator[Piece]:
    yield b"{"
    for name, array in outputs.items():
        yield _text(name) + b":"
        yield from tensor(_row_major(array))
        yield b","
    yield b'"info":' + _text(info) + b"}"


# What stands before data is the same for all tensors of a kind: a packer takes as long to make as to use.


@lru_cache(maxsize=16)
def _map_header(length: int) -> bytes:
    head: bytes = msgpack.Packer().pack_map_header(length)
    return head


@lru_cache(maxsize=64)
def _name(name: str) -> bytes:
    return _pack(name)


def _plain(array: Array) -> Iterator[Piece]:
    yield _plain_head(array.dtype, array.shape, array.nbytes)
    yield _bytes_of(array)


def _msgpack_numpy(array: Array) -> Iterator[Piece]:
    """Write the same bytes as the package of that name, keys and their order included."""
    yield _msgpack_numpy_head(array.dtype, array.shape, array.nbytes)
    yield _bytes_of(array)


@lru_cache(maxsize=1024)
def _plain_head(dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int) -> bytes:
    return _head({"dtype": dtype_name(dtype), "shape": shape, "data": b""}, nbytes)


@lru_cache(maxsize=1024)
def _msgpack_numpy_head(dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int) -> bytes:
    fields = {b"nd": True, b"type": dtype.str, b"kind": b"", b"shape": shape, b"data": b""}
    return _head(fields, nbytes)


def _head(fields: Mapping[Any, object], nbytes: int) -> bytes:
    """The fields, of which the last is empty, up to where an array's bytes take its place."""
    return _pack(fields).removesuffix(_EMPTY_BIN) + _bin_header(nbytes)


def _list(array: Array) -> Iterator[Piece]:
    yield _json_head(array)
    yield from _numbers(array)
    yield b"}"


def _base64(array: Array) -> Iterator[Piece]:
    yield _json_head(array) + b'"'
    for data in _slices(_bytes_of(array)):
        yield binascii.b2a_base64(data, newline=False)
    yield b'"}'


def _slices(data: Piece) -> Iterator[Piece]:
    """The data in parts whose base64 can be joined."""
    for start in range(0, len(data), BASE64_BYTES):
        yield data[start : start + BASE64_BYTES]


def _json_head(array: Array) -> bytes:
    fields = {"dtype": dtype_name(array.dtype), "shape": array.shape}
    return _text(fields).removesuffix(b"}") + b',"data":'


def _numbers(array: Array) -> Iterator[bytes]:
    """Write nested lists with the fewest digits that give the same numbers back.

    A number that is not finite comes out as `null`, in whose place its text is put.
    """
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    text = orjson.dumps(native, option=orjson.OPT_SERIALIZE_NUMPY)
    odd = native[~np.isfinite(native)]
    if not odd.size:
        yield text
        return
    names = np.where(np.isnan(odd), b'"NaN"', np.where(odd > 0, b'"Infinity"', b'"-Infinity"'))
    parts = text.split(b"null")
    for part, name in zip(parts, [*names.tolist(), b""], strict=True):
        yield part
        yield name


def _row_major(array: Array) -> Array:
    """The array in row-major order and little-endian: itself, where it is both."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _bytes_of(array: Array) -> Piece:
    return array.reshape(-1).view(np.uint8).data if array.size else b""


def _bin_header(length: int) -> bytes:
    """The head of binary data in msgpack: bin 8, bin 16 or bin 32."""
    if length < 2**8:
        return struct.pack(">BB", 0xC4, length)
    if length < 2**16:
        return struct.pack(">BH", 0xC5, length)
    if length < 2**32:
        return struct.pack(">BI", 0xC6, length)
    raise OverflowError(f"msgpack holds no {length} bytes in one tensor; ask for JSON")


def _pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, default=_beyond_64_bits)
    return packed


def _beyond_64_bits(value: object) -> float:
    """The nearest float64 of a count that msgpack has no integer for."""
    if type(value) is not int:
        raise TypeError(f"an answer holds no {type(value).__name__}")
    return float(value)


def _text(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


_Tensor = Callable[[Array], Iterator[Piece]]
_TENSORS: Final[Mapping[TensorForm, _Tensor]] = {
    "plain": _plain,
    "msgpack-numpy": _msgpack_numpy,
    "list": _list,
    "base64": _base64,
}
_EMPTY_BIN: Final = b"\xc4\x00"
