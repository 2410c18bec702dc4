"""Bodies → requests: which top-level key is what.

What a config field means, and which tensors an operation takes, is the engine's business; a name
that nobody knows is handed on, so that the caller refuses it with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from app.errors import MalformedBody
from app.wire import read_json, read_msgpack
from app.wire.elements import TENSORS, Array, read_dtype, read_shape
from app.wire.lift import Body
from app.wire.limits import DecodeLimits
from app.wire.negotiation import Codec, Exchange
from app.wire.plain import check_plain, check_text, kind
from engine.errors import InvalidValue, MissingField, fail
from engine.words import counted


@dataclass(frozen=True)
class Request:
    """A decoded body of `forward` or `backward`.

    Attributes:
        config: as it was sent, plain but not validated; None where there is none.
        tensors: read-only arrays in native byte order, by name.
        wants: as it was sent, plain but not validated; None where there is none.
        extra: names of the other keys, which no request has.
    """

    config: dict[str, object] | None
    tensors: Mapping[str, Array]
    wants: object
    extra: tuple[str, ...]


@dataclass(frozen=True)
class PlanRequest:
    """A decoded body of `plan`.

    Attributes:
        config: as it was sent, plain but not validated; None where there is none.
        shapes: by name of tensor.
        dtype: the full name of an element type; float32 where none was sent.
        extra: names of the other keys, which no request has.
    """

    config: dict[str, object] | None
    shapes: Mapping[str, tuple[int, ...]]
    dtype: str
    extra: tuple[str, ...]


@dataclass(frozen=True)
class _Reader:
    load: Callable[[Body, DecodeLimits], object]
    tensor: Callable[[object, str, DecodeLimits], Array]


_READERS: Final[Mapping[Codec, _Reader]] = MappingProxyType(
    {
        "msgpack": _Reader(read_msgpack.load, read_msgpack.tensor),
        "json": _Reader(read_json.load, read_json.tensor),
    }
)


def decode(body: Body, exchange: Exchange, limits: DecodeLimits) -> Request:
    """Read the body of `forward` or `backward`.

    Raises:
        MalformedBody: it is not valid, a tensor contradicts itself, or a limit is broken.
        InvalidValue: `config` is not a map, or a tensor has too many axes.
        LimitExceeded: it has more numbers or lists in JSON than one body may.
    """
    given = _top(body, exchange, limits)
    config, wants = _config(given, limits), given.pop("wants", None)
    check_plain(wants, ("wants",), limits)
    read = _READERS[exchange.request].tensor
    values = {name: given.pop(name) for name in TENSORS if name in given}
    # Null is the same as none, as it is for config and wants.
    tensors = {n: read(value, n, limits) for n, value in values.items() if value is not None}
    return Request(config, tensors, wants, tuple(given))


def decode_plan(body: Body, exchange: Exchange, limits: DecodeLimits) -> PlanRequest:
    """Read the body of `plan`.

    Raises:
        MalformedBody: it is not valid, or a limit is broken.
        MissingField: `shapes` is missing.
        InvalidValue: `config` or `shapes` is not a map, a shape is none, `dtype` is unknown.
    """
    given = _top(body, exchange, limits)
    config, shapes = _config(given, limits), _map(given, "shapes", limits)
    if shapes is None:
        # Whoever sends tensors has the body of another action.
        sent = [name for name in TENSORS if name in given]
        msg = "a plan takes shapes, not tensors" if sent else "the shapes are missing"
        expected = 'a map from tensor name to shape, as {"x": [1, 3, 8, 8]}'
        raise fail(MissingField, ("shapes",), msg, expected, ", ".join(sent) or None)
    dtype = given.pop("dtype", "float32")
    check_plain(dtype, ("dtype",), limits)
    try:
        sizes = {name: read_shape(shapes[name], ("shapes", name), limits) for name in shapes}
        name = read_dtype(dtype, ("dtype",)).name
    except MalformedBody as error:
        # There are no bytes that a shape could contradict: these are values like those of config.
        raise InvalidValue(error.issues) from None
    return PlanRequest(config, sizes, name, tuple(given))


def _top(body: Body, exchange: Exchange, limits: DecodeLimits) -> dict[str, object]:
    if not len(body):
        # As it is for a server where a client tells neither a length nor chunks.
        raise MalformedBody.at((), "the body is empty", "a map", counted(0, "byte"))
    given = _READERS[exchange.request].load(body, limits)
    if not isinstance(given, dict):
        raise MalformedBody.at((), "the body is not a map", "a map", kind(given))
    for name in given:
        check_text(name, (), limits)
    return given


def _config(given: dict[str, object], limits: DecodeLimits) -> dict[str, object] | None:
    return _map(given, "config", limits)


def _map(given: dict[str, object], name: str, limits: DecodeLimits) -> dict[str, object] | None:
    """Take a map of plain values out of the body; null is the same as none."""
    value = given.pop(name, None)
    check_plain(value, (name,), limits)
    if value is None or isinstance(value, dict):
        return value
    raise fail(InvalidValue, (name,), "not a map", "a map", kind(value))
