"""msgpack, and arrays as the `msgpack-numpy` package writes them, without trusting either.

That package's own decoder is never used: on its maps of kind `O` it unpickles, and on others it
takes any element type that NumPy has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgpack

from app.errors import MalformedBody
from app.wire import lift
from app.wire.elements import Array, from_bytes, read_dtype, read_fields, read_shape
from app.wire.faults import MOST_SHOWN, MOST_STEPS, Fault
from app.wire.limits import DecodeLimits
from app.wire.plain import GZIP, gzipped, kind, too_deep, too_many_values
from engine.errors import Loc
from engine.words import Words, counted

PLAIN_FIELDS: Final = ("dtype", "shape", "data")
NUMPY_FIELDS: Final = ("nd", "type", "kind", "shape", "data")


def load(body: lift.Body, limits: DecodeLimits) -> object:
    """Unpack a body into plain values and `bytes`, every key a `str`.

    Raises:
        MalformedBody: it is not one msgpack value, or it breaks a limit.
    """
    values = used = 0
    faulty = False

    def count(more: int) -> None:
        nonlocal values
        values += more
        if values > limits.max_values:
            raise too_many_values(limits)

    def on_list(items: list[object]) -> list[object]:
        count(len(items))
        return items

    def on_map(pairs: list[tuple[object, object]]) -> object:
        count(len(pairs))
        made = _map(pairs)
        if isinstance(made, Fault):
            nonlocal faulty
            faulty = True  # the unpacker does not say where; that is seen once all is there
        return made

    def on_extension(code: int, data: bytes) -> memoryview:
        nonlocal used
        if code != lift.CODE or not lifted:
            raise _extension(code)
        used += 1
        return lifted[int.from_bytes(data, "big")].data

    lifted: Sequence[lift.Lifted] = ()
    if len(body) >= limits.view_bytes:
        body, lifted = lift.lift(body, limits.view_bytes)
    try:
        value = msgpack.unpackb(
            body,
            raw=False,
            strict_map_key=False,
            list_hook=on_list,
            object_pairs_hook=on_map,
            ext_hook=on_extension,
            max_str_len=limits.max_text,
            max_array_len=limits.max_values,
            max_map_len=limits.max_values,
            max_ext_len=lift.POSITION_BYTES if lifted else 0,
        )
    except (ValueError, msgpack.UnpackException) as error:
        raise _explained(error, limits, sum(each.saved for each in lifted[used:])) from None
    if faulty:
        raise _located(value)
    return value


def tensor(value: object, name: str, limits: DecodeLimits) -> Array:
    """Read a tensor in either encoding, as a read-only view on its bytes where it can be one.

    Raises:
        MalformedBody: it is not a tensor, or its parts contradict each other.
        InvalidValue: it has more axes than a tensor may have.
    """
    loc = (name,)
    if not isinstance(value, dict):
        expected = f"a map with the keys {', '.join(PLAIN_FIELDS)}"
        raise MalformedBody.at(loc, "a tensor is a map", expected, kind(value))
    if "nd" in value:
        return _numpy_tensor(value, loc, limits)
    dtype, shape, data = read_fields(value, PLAIN_FIELDS, loc)
    return from_bytes(
        _binary(data, loc),
        read_dtype(dtype, (*loc, "dtype")),
        read_shape(shape, (*loc, "shape"), limits),
        loc,
    )


def _numpy_tensor(value: dict[str, object], loc: Loc, limits: DecodeLimits) -> Array:
    nd = value["nd"]
    if nd is not True:  # a scalar has neither kind nor shape
        got = nd if nd is False else kind(nd)
        raise MalformedBody.at((*loc, "nd"), "only arrays are read, not scalars", "true", got)
    _, type_, kind_, shape, data = read_fields(value, NUMPY_FIELDS, loc)
    if kind_ not in (b"", ""):
        msg = "only plain numeric arrays are read, never objects or structures"
        raise MalformedBody.at((*loc, "kind"), msg, "empty", _name(kind_))
    return from_bytes(
        _binary(data, loc),
        read_dtype(_name(type_), (*loc, "type")),
        read_shape(shape, (*loc, "shape"), limits),
        loc,
    )


def _name(value: object) -> object:
    """A name that may have come as binary data, as text where it is a short one."""
    if isinstance(value, bytes) and len(value) <= 16 and value.isascii():
        return value.decode("ascii")
    return value


def _binary(data: object, loc: Loc) -> bytes | memoryview:
    if not isinstance(data, bytes | memoryview):
        msg = "the data of a tensor is binary in msgpack"
        raise MalformedBody.at((*loc, "data"), msg, "bin", kind(data))
    return data


def _map(pairs: list[tuple[object, object]]) -> dict[str, object] | Fault:
    """Make a map, whose keys are binary only where it is an array of `msgpack-numpy`."""
    result: dict[str, object] = {}
    binary = None
    for key, value in pairs:
        name = _name(key)
        if name is not key:
            binary = key
        if not isinstance(name, str):
            return _no_text(name)
        if name in result:
            twice = name[:MOST_SHOWN]
            return Fault(f"the key {twice!a} appears twice in one map", below=(twice,))
        result[name] = value
    if binary is not None and not {"nd"} <= result.keys() <= set(NUMPY_FIELDS):
        return _no_text(binary)
    return result


def _no_text(key: object) -> Fault:
    """Of a key that is none, of a map."""
    if isinstance(key, Fault):
        key = {}  # the map that it stands for
    got = key if isinstance(key, bytes | int | float) else kind(key)
    return Fault("the keys of a map are text", "str", got)


def _located(value: object) -> MalformedBody:
    """The error of the first fault in a value that has one, with the path that leads there."""
    waiting: list[tuple[Loc, object]] = [((), value)]
    while True:
        loc, value = waiting.pop()
        if isinstance(value, Fault):
            return value.at(loc)
        items: Iterable[tuple[str | int, object]] = ()
        if isinstance(value, dict):
            items = ((key[:MOST_SHOWN], item) for key, item in value.items())
        elif isinstance(value, list):
            items = enumerate(value)
        waiting.extend(reversed([((*loc, step)[:MOST_STEPS], item) for step, item in items]))


def _extension(code: int) -> MalformedBody:
    msg = "extension types are not read here"
    return MalformedBody.at((), msg, _AS_BIN, Words(f"ext {code}"))


def _explained(error: Exception, limits: DecodeLimits, left_out: int) -> MalformedBody:
    """Say in our words what the unpacker found in a body from whose end so many bytes were left out."""
    if isinstance(error, msgpack.ExtraData):
        extra = counted(len(error.extra) + left_out, "byte")
        if type(error.unpacked) is int and error.unpacked in _OPENS_JSON:
            msg = "this looks like JSON, and Content-Type says that it is msgpack"
            return MalformedBody.at((), msg, "msgpack, or Content-Type: application/json")
        if error.unpacked == GZIP[0] and error.extra[:1] == GZIP[1:]:
            return gzipped("msgpack")
        return MalformedBody.at((), "bytes follow the end of the value", "nothing", extra)
    if isinstance(error, msgpack.StackError):
        return too_deep(limits.max_depth)
    if isinstance(error, UnicodeDecodeError):
        got = Words(f"a text of {counted(len(error.object), 'byte')}")
        return MalformedBody.at((), "a text is not valid UTF-8", _AS_BIN, got)
    reason = str(error) or "there is a byte that begins no value"
    if (exceeded := _EXCEEDED.match(reason)) and exceeded[2] in _LONG:
        what, units = _LONG[exceeded[2]]
        most = limits.max_text if units == "bytes" else limits.max_values
        msg = f"{what} is too long to be read here"
        as_bin = f"at most {most} {units}; the data of tensors is bin"
        return MalformedBody.at((), msg, as_bin, f"{exceeded[1]} {units}")
    reason = next((meaning for part, meaning in _REASONS.items() if part in reason), reason)
    expected = _AS_BIN if reason == _EXTENSION else None
    return MalformedBody.at((), f"this is not msgpack as it is read here: {reason}", expected)


_OPENS_JSON: Final = tuple(b"{[")
"""What the first byte of JSON is in msgpack: a small number, with the rest after it."""

_AS_BIN: Final = "plain values, texts in UTF-8, and the data of tensors as bin"
"""Where there is something else than we read, it mostly is data from an encoder that has no bin, or was not
told that it is bytes."""

_EXCEEDED: Final = re.compile(r"(\d+) exceeds (\w+)")
_LONG: Final = {
    "max_array_len": ("a list", "entries"),
    "max_map_len": ("a map", "entries"),
    "max_str_len": ("a text", "bytes"),
}
"""What the unpacker's limits are of, and what it counts."""

_EXTENSION: Final = "it has an extension type"

_REASONS: Final = {
    "max_ext_len": _EXTENSION,
    "timestamp": _EXTENSION,
    "incomplete": "it ends in the middle of a value",
}
