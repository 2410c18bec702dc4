"""JSON: nested or flat lists, or base64, each checked before it is built.

Nothing here loops in Python over the numbers of a tensor; `nested` has the part that turns lists
into arrays.
"""

from __future__ import annotations

import binascii
import json
import re
from math import prod
from typing import Any, Final

import numpy as np

from app.errors import LimitExceeded, MalformedBody
from app.wire.elements import TENSORS, Array, from_bytes, read_dtype, read_fields, read_shape
from app.wire.faults import STRING, Refused, located, refuse_constant, unique
from app.wire.lift import Body
from app.wire.limits import DecodeLimits
from app.wire.nested import numbers_in, to_array
from app.wire.plain import GZIP, gzipped, kind, too_deep, too_many_values
from engine.errors import InvalidValue, Loc
from engine.words import counted

FIELDS: Final = ("dtype", "shape", "data")

MOST_LEVELS: Final = 500
"""Of maps and lists within each other, tensor data included. The parser takes nearly 1000, and fewer the
deeper in a program it is called, so that the answer would depend on who reads the body."""

COMMAS_BESIDE: Final = 4
"""So many times the values that a body may have outside tensor data are taken for commas there: those of
maps, of lists in `config` and `wants`, and of shapes. With more commas, a body is refused before it is
parsed; with fewer, and near the limit, its numbers are counted."""


def load(body: Body, limits: DecodeLimits) -> object:
    """Parse a body into plain values.

    Raises:
        MalformedBody: it is not one JSON value in UTF-8, or it breaks a limit on values or depth.
        LimitExceeded: it has more numbers or lists than one body may.
    """
    try:
        text = str(body, "utf-8")
    except UnicodeDecodeError as error:
        raise _no_text(body, error.start) from None
    if text.startswith("\ufeff"):
        msg = "a byte order mark stands before the JSON"
        raise MalformedBody.at((), msg, "UTF-8 without it", "U+FEFF")
    commas = _check_counts(text, limits)
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise too_deep(limits.max_depth) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedBody.at((), f"this is not JSON: {error.msg} ({where})") from None
    except Refused as refused:
        raise located(text, refused.fault) from None
    except ValueError:
        raise located(text, None) from None
    # Within a tensor there is one number more than there are commas.
    if commas + len(TENSORS) > limits.max_elements and isinstance(value, dict):
        numbers = sum(numbers_in(value[name]) for name in TENSORS if name in value)
        if numbers > limits.max_elements:
            raise _too_many("numbers", limits.max_elements, numbers)
    return value


def _no_text(body: Body, start: int) -> MalformedBody:
    """The error of a body that is not UTF-8 from a byte on."""
    if start == 0 and body[0] in _OPENS_MSGPACK:
        msg = "this looks like msgpack, and Content-Type says that it is JSON"
        return MalformedBody.at((), msg, "JSON, or Content-Type: application/vnd.msgpack")
    if body[:2] == GZIP:
        return gzipped("JSON")
    return MalformedBody.at((), "the body is not valid UTF-8", "UTF-8", f"byte {start}")


def tensor(value: object, name: str, limits: DecodeLimits) -> Array:
    """Read a tensor: a map, or a bare nested list, which is float32 (`indices`: int64).

    Raises:
        MalformedBody: it is not a tensor, or its parts contradict each other.
        InvalidValue: it has more axes than a tensor may have.
    """
    loc = (name,)
    if isinstance(value, list):
        dtype = np.dtype(np.int64 if name == "indices" else np.float32)
        return to_array(value, dtype, loc, limits)
    if not isinstance(value, dict):
        expected = f"a nested list, or a map with the keys {', '.join(FIELDS)}"
        raise MalformedBody.at(loc, "a tensor is a list or a map", expected, kind(value))
    dtype_, shape_, data = read_fields(value, FIELDS, loc)
    dtype = read_dtype(dtype_, (*loc, "dtype"))
    shape = read_shape(shape_, (*loc, "shape"), limits)
    if isinstance(data, str):
        return from_bytes(_base64(data, dtype, shape, loc), dtype, shape, loc)
    if isinstance(data, list):
        return _fitted(_listed(data, dtype, (*loc, "data"), limits), shape, loc)
    expected = "a list of numbers, or text in base64"
    raise MalformedBody.at((*loc, "data"), "this is no data of a tensor", expected, kind(data))


def _check_counts(text: str, limits: DecodeLimits) -> int:
    """Bound what parsing will build by counting the signs that each part must have.

    Returns:
        The commas; only few of a body that can be right are not between numbers.
    """
    maps, lists, commas = text.count("{"), text.count("["), text.count(",")
    if maps + text.count(":") > limits.max_values:
        raise too_many_values(limits)
    if lists > limits.max_lists:
        raise _too_many("lists", limits.max_lists, lists)
    if commas > limits.max_elements + COMMAS_BESIDE * limits.max_values:
        raise _too_many("numbers", limits.max_elements, commas + 1)
    if maps + lists > MOST_LEVELS and _levels(text) > MOST_LEVELS:
        raise too_deep(MOST_LEVELS, which="of maps and lists")
    return commas


def _too_many(what: str, most: int, found: int) -> LimitExceeded:
    """The error of a body that has more numbers or lists than one may."""
    expected = f"at most {most}, or tensors in base64 or msgpack"
    msg = f"the body has too many {what}"
    return LimitExceeded.at(("cost", f"json_{what}"), msg, expected, found)


def _levels(text: str) -> int:
    """How many maps and lists are within each other at most."""
    brackets = STRING.sub("", text).encode().translate(None, _NO_BRACKETS)
    steps = _STEPS[np.frombuffer(brackets, np.uint8)]
    return int(steps.cumsum(dtype=np.int32).max(initial=0))


def _base64(data: str, dtype: np.dtype[Any], shape: tuple[int, ...], loc: Loc) -> bytes:
    """Decode base64 of the length that the shape needs, and only that."""
    loc, needed = (*loc, "data"), prod(shape) * dtype.itemsize
    length = 4 * ((needed + 2) // 3)
    if len(data) != length:
        msg = f"the data does not fit the shape {list(shape)} of {dtype.name}"
        form = f"{length} characters of base64, padded, without line breaks"
        expected = f"{counted(needed, 'byte')}, which are {form}"
        raise MalformedBody.at(loc, msg, expected, counted(len(data), "character"))
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        expected = "the standard alphabet of RFC 4648, padded, without spaces"
        # Of digits as many as there have to be all is right: else padding stands before its place.
        other = _OTHER.search(data)
        at = other.start() if other else data.index("=")
        got = f"{data[at]!a} at character {at}"
        raise MalformedBody.at(loc, "the data is not base64", expected, got) from None


def _listed(data: list[Any], dtype: np.dtype[Any], loc: Loc, limits: DecodeLimits) -> Array:
    """Read a list beside a shape, which it contradicts if it nests more deeply than any shape has axes."""
    try:
        return to_array(data, dtype, loc, limits)
    except InvalidValue as error:
        (issue,) = error.issues
        raise MalformedBody.at(loc, issue.msg, issue.expected) from None


def _fitted(array: Array, shape: tuple[int, ...], loc: Loc) -> Array:
    """Give a list's array the shape it was sent with: the list nests like it, or is flat."""
    found = array.shape
    flat = found == (prod(shape),)
    # A nested list ends at the first axis of length 0, where the later ones leave no trace.
    empty = 0 in found and found == shape[: len(found)]
    if not (found == shape or flat or empty):
        expected = f"lists of the shape {list(shape)}, or one list of {prod(shape)}"
        msg = "the lists do not fit the shape"
        raise MalformedBody.at((*loc, "data"), msg, expected, f"lists of the shape {list(found)}")
    return array.reshape(shape)


_OPENS_MSGPACK: Final = frozenset((*range(0x80, 0x90), 0xDE, 0xDF))
"""How a map begins in msgpack; no text in UTF-8 begins so."""

_OTHER: Final = re.compile(r"[^A-Za-z0-9+/=]")
"""What does not stand in base64."""

_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_DECODER: Final = json.JSONDecoder(object_pairs_hook=unique, parse_constant=refuse_constant)
