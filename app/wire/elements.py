"""What every encoding of a tensor has: an element type, a shape, and bytes that fit both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.errors import MalformedBody
from app.wire.limits import DecodeLimits
from app.wire.plain import kind
from engine.errors import InvalidValue, Loc, fail
from engine.resolve import FLOATS, INTEGERS, SPELT
from engine.words import counted, did_you_mean

Array = NDArray[Any]

TENSORS: Final[tuple[str, ...]] = ("x", "weight", "bias", "indices", "dy")
"""Every tensor that a request can bring, over all operations."""

NAMES: Final = FLOATS + INTEGERS
"""The element types that are read, by their full names."""

TAKEN: Final[Mapping[object, Sequence[str]]] = {"x": NAMES, "indices": INTEGERS, "dtype": NAMES}
"""What a tensor or a plan may be of, where that is not `FLOATS`; what else is read, the engine refuses."""

LARGEST_AXIS: Final = 2**31 - 1
"""The longest axis of a shape."""

LARGEST_TENSOR: Final = 2**63 - 1
"""The most bytes of a shape, its axes of length 0 left out; NumPy can count no further."""


DTYPES: Final[Mapping[str, np.dtype[Any]]] = {
    spelling: np.dtype(name).newbyteorder(">" if spelling.startswith(">") else "<")
    for spelling, name in SPELT.items()
}
"""Spelling of an element type → how its bytes are to be read; where it says nothing, as little-endian."""


def read_dtype(value: object, loc: Loc) -> np.dtype[Any]:
    """Look an element type up.

    Raises:
        MalformedBody: it is none of `DTYPES`.
    """
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    msg = "this is no element type that is read here"
    # As libraries write theirs: `torch.float32`, `<class 'numpy.float32'>`.
    name = value.rpartition(".")[2].rstrip("'>") if isinstance(value, str) else None
    if name == "bfloat16":
        msg = "bfloat16 is not supported yet"
    elif isinstance(value, str) and value[:1] == "=" and value[1:] in DTYPES:
        msg = (
            "the byte order of the sender's own machine is not known here; < and > say which it is"
        )
    taken = TAKEN.get(loc[0], FLOATS)
    msg += did_you_mean(name, taken, slips=False)
    got = value if isinstance(value, str) else kind(value)
    raise MalformedBody.at(loc, msg, ", ".join(taken), got)


def read_shape(value: object, loc: Loc, limits: DecodeLimits) -> tuple[int, ...]:
    """Check a shape, in Python's integers.

    Raises:
        MalformedBody: it is not a list of integers, or an axis is out of range.
        InvalidValue: it has more axes than a tensor may have, which contradicts nothing in the body.
    """
    if not isinstance(value, list):
        raise MalformedBody.at(loc, "a shape is a list", "a list of integers", kind(value))
    if len(value) > limits.max_rank:
        expected = f"at most {counted(limits.max_rank, 'axis', 'axes')}"
        got = counted(len(value), "axis", "axes")
        raise fail(InvalidValue, loc, "the shape has too many axes", expected, got)
    for axis, length in enumerate(value):
        if type(length) is not int:
            expected, msg = "an integer", "the length of an axis is an integer"
            shown = length if type(length) is float else kind(length)
            raise MalformedBody.at((*loc, axis), msg, expected, shown)
        if not 0 <= length <= LARGEST_AXIS:
            expected, msg = f"0 to {LARGEST_AXIS}", "the length of an axis is out of range"
            raise MalformedBody.at((*loc, axis), msg, expected, length)
    if 8 * prod(length for length in value if length) > LARGEST_TENSOR:
        msg = "no tensor can be as large as this shape says"
        raise MalformedBody.at(loc, msg, f"at most {LARGEST_TENSOR} bytes", value)
    return tuple(value)


def read_fields(value: Mapping[str, object], names: Sequence[str], loc: Loc) -> list[object]:
    """Take the fields of a tensor's map, in the order of `names`.

    Raises:
        MalformedBody: one is missing, or there are others.
    """
    for name in names:
        if name not in value:
            expected = f"a map with the keys {', '.join(names)}"
            raise MalformedBody.at((*loc, name), "this part of the tensor is missing", expected)
    if len(value) > len(names):
        other = next(name for name in value if name not in names)
        msg = "a tensor has no such part"
        raise MalformedBody.at((*loc, other[:64]), msg, ", ".join(names), other)
    return [value[name] for name in names]


def from_bytes(
    data: bytes | memoryview, dtype: np.dtype[Any], shape: tuple[int, ...], loc: Loc
) -> Array:
    """View bytes as a read-only array in native byte order (a copy where that is not theirs).

    Raises:
        MalformedBody: there are more or fewer bytes than the shape has.
    """
    check_length(len(data), dtype, shape, loc)
    array = np.frombuffer(data, dtype).reshape(shape)
    return read_only(array if dtype.isnative else array.astype(dtype.newbyteorder("=")))


def check_length(length: int, dtype: np.dtype[Any], shape: tuple[int, ...], loc: Loc) -> None:
    """Compare the number of bytes with the shape.

    Raises:
        MalformedBody: they differ.
    """
    needed = prod(shape) * dtype.itemsize
    if length != needed:
        msg = f"the data does not fit the shape {list(shape)} of {dtype.name}"
        raise MalformedBody.at(
            (*loc, "data"), msg, counted(needed, "byte"), counted(length, "byte")
        )


def read_only(array: Array) -> Array:
    """Bar writing, so that what a client sent stays what it sent."""
    array.flags.writeable = False
    return array
