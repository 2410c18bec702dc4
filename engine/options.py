"""Config fields: what each accepts, how it is read, and the JSON Schema that says so.

An operation's config is a frozen dataclass whose fields are made with `option(...)`; `engine.configs`
reads it. Every kind of field is one small class with `read` (a plain value to the field's value, or
InvalidValue with the field's path) and `schema`. Booleans are never integers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from engine.errors import EngineError, InvalidValue, Loc, UnknownField, fail
from engine.words import counted, did_you_mean, hints, one_of

LARGEST = 2**31 - 1
"""The largest integer that a config field accepts."""

Schema = dict[str, Any]


class Kind(Protocol):
    """How one kind of field is read and described."""

    def read(self, value: object, loc: Loc, dims: int) -> Any:
        """Turn a plain value into the field's value for `dims` spatial dimensions."""

    def schema(self) -> Schema:
        """The JSON Schema of the plain value."""


def read_integer(value: object, loc: Loc, minimum: int, also: str = "") -> int:
    """Read one integer from `minimum` to LARGEST; a bool is none, nor is 2.0.

    Args:
        loc: where the value stands, for the error.
        also: what else is expected in its place, for the error.

    Raises:
        InvalidValue: the value is none, or out of range.
    """
    msg = "not an integer"
    if isinstance(value, int) and not isinstance(value, bool):
        if minimum <= value <= LARGEST:
            return value
        msg = "out of range"
    raise fail(InvalidValue, loc, msg, f"an integer from {minimum} to {LARGEST}{also}", value)


def unknown_fields(
    given: Iterable[object], known: Collection[str], loc: Loc, msg: str = "no such field"
) -> list[EngineError]:
    """An error for each name given that is not among the known, with what may have been meant."""
    unknown = [name for name in given if name not in known]
    expected = one_of(known) if len(known) > 1 else f"only {one_of(known)}"
    return [
        fail(UnknownField, (*loc, str(name)), f"{msg}{hint}", expected, name)
        for name, hint in hints(unknown, lambda name: did_you_mean(name, known))
    ]


@dataclass(frozen=True)
class PerAxis:
    """One integer for all spatial axes, or a list of one for each; `hole` also takes null."""

    minimum: int
    hole: bool = False

    def read(self, value: object, loc: Loc, dims: int) -> tuple[int | None, ...]:
        if isinstance(value, list | tuple):
            if len(value) != dims:
                entries = counted(dims, "entry", "entries")
                expected = f"{entries}, one per spatial axis, or one integer"
                raise fail(InvalidValue, loc, "wrong number of entries", expected, len(value))
            return tuple(self._one(entry, (*loc, axis)) for axis, entry in enumerate(value))
        return (self._one(value, loc, ", or one for each spatial axis"),) * dims

    def _one(self, value: object, loc: Loc, also: str = "") -> int | None:
        if value is None and self.hole:
            return None
        return read_integer(value, loc, self.minimum, ", or null" * self.hole + also)

    def schema(self) -> Schema:
        one: Schema = {"type": "integer", "minimum": self.minimum, "maximum": LARGEST}
        entry = {"anyOf": [one, {"type": "null"}]} if self.hole else one
        many = {"type": "array", "items": entry, "minItems": 1, "maxItems": 3}
        return {"anyOf": [one, many, *([{"type": "null"}] if self.hole else [])]}


Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Padding:
    """A name, an integer, one integer per spatial axis, or a [low, high] pair per axis."""

    names: tuple[str, ...]

    def read(self, value: object, loc: Loc, dims: int) -> str | Pads:
        if isinstance(value, str):
            if value not in self.names:
                msg = f"unknown padding{did_you_mean(value, self.names)}"
                raise fail(InvalidValue, loc, msg, f"{one_of(self.names)}, or integers", value)
            return value
        if not isinstance(value, list | tuple):
            also = f", one or [low, high] for each spatial axis, or {one_of(self.names)}"
            return ((read_integer(value, loc, 0, also),) * 2,) * dims
        if len(value) != dims:
            entries = counted(dims, "entry", "entries")
            expected = f"{entries}, an integer or [low, high] for each spatial axis, or one integer"
            raise fail(InvalidValue, loc, "wrong number of entries", expected, len(value))
        return tuple(_pair(entry, (*loc, axis)) for axis, entry in enumerate(value))

    def schema(self) -> Schema:
        one: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}
        pair = {"type": "array", "items": one, "minItems": 2, "maxItems": 2}
        many = {"type": "array", "items": {"anyOf": [one, pair]}, "minItems": 1, "maxItems": 3}
        return {"anyOf": [one, many, {"enum": list(self.names)}]}


def _pair(value: object, loc: Loc) -> tuple[int, int]:
    if not isinstance(value, list | tuple):
        both = read_integer(value, loc, 0)
        return both, both
    if len(value) != 2:
        raise fail(InvalidValue, loc, "not a pair", "[low, high]", len(value))
    return read_integer(value[0], (*loc, 0), 0), read_integer(value[1], (*loc, 1), 0)


@dataclass(frozen=True)
class Choice:
    """One name out of a list."""

    names: tuple[str, ...]

    def read(self, value: object, loc: Loc, dims: int) -> str:  # noqa: ARG002
        if not isinstance(value, str) or value not in self.names:
            msg = f"unknown name{did_you_mean(value, self.names)}"
            raise fail(InvalidValue, loc, msg, one_of(self.names), value)
        return value

    def schema(self) -> Schema:
        return {"enum": list(self.names)}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def read(self, value: object, loc: Loc, dims: int) -> bool:  # noqa: ARG002
        if not isinstance(value, bool):
            raise fail(InvalidValue, loc, "not a boolean", "true or false", value)
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Integer:
    """One integer of at least `minimum`; not 0 where `divides`."""

    minimum: int
    divides: bool = False

    def read(self, value: object, loc: Loc, dims: int) -> int:  # noqa: ARG002
        number = read_integer(value, loc, self.minimum)
        if self.divides and number == 0:
            raise fail(InvalidValue, loc, "nothing can be divided by it", "any integer but 0", 0)
        return number

    def schema(self) -> Schema:
        schema: Schema = {"type": "integer", "minimum": self.minimum, "maximum": LARGEST}
        return {**schema, "not": {"const": 0}} if self.divides else schema


@dataclass(frozen=True)
class Number:
    """One finite number, above zero where `positive`.

    -0.0 is read as 0.0: calls with the one and the other are equal, so they must give equal bits.
    """

    positive: bool = False

    def read(self, value: object, loc: Loc, dims: int) -> float:  # noqa: ARG002
        expected = "a finite number above 0" if self.positive else "a finite number"
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise fail(InvalidValue, loc, "not a number", expected, value)
        try:
            number = float(value) + 0.0
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or (self.positive and number <= 0):
            raise fail(InvalidValue, loc, "not an acceptable number", expected, value)
        return number

    def schema(self) -> Schema:
        return {"type": "number", **({"exclusiveMinimum": 0} if self.positive else {})}


@dataclass(frozen=True)
class Letters:
    """A layout: its letters are checked against the dimensions when the plan is made.

    Attributes:
        pattern: of all that are one in some number of dimensions, a regular expression.
    """

    examples: tuple[str, ...]
    pattern: str

    @classmethod
    def of_samples(cls) -> Letters:
        """Of x, y and their gradients."""
        return cls(("NCHW", "NHWC"), "^N(C(W|HW|DHW)|(W|HW|DHW)C)$")

    @classmethod
    def of_weights(cls) -> Letters:
        """Of a convolution's weight and its gradient."""
        return cls(("OIHW", "HWIO", "IOHW"), "^[OIDHW]{3,5}$")

    def read(self, value: object, loc: Loc, dims: int) -> str:  # noqa: ARG002
        if not isinstance(value, str):
            raise fail(InvalidValue, loc, "not a layout", f"for example {self.examples[0]}", value)
        return value

    def schema(self) -> Schema:
        return {"type": "string", "pattern": self.pattern, "examples": list(self.examples)}


@dataclass(frozen=True)
class Shape:
    """The whole shape of a tensor, samples included."""

    def read(self, value: object, loc: Loc, dims: int) -> tuple[int, ...]:  # noqa: ARG002
        if not isinstance(value, list | tuple) or not 3 <= len(value) <= 5:
            raise fail(InvalidValue, loc, "not a shape", "a list of 3 to 5 integers", value)
        return tuple(read_integer(entry, (*loc, axis), 0) for axis, entry in enumerate(value))

    def schema(self) -> Schema:
        one = {"type": "integer", "minimum": 0, "maximum": LARGEST}
        return {"type": "array", "items": one, "minItems": 3, "maxItems": 5}


@dataclass(frozen=True)
class Option:
    """A config field: its kind, its one-line description, and whether null stands for 'not given'."""

    kind: Kind
    help: str
    required: bool
    nullable: bool
    default: Any

    def read(self, value: object, loc: Loc, dims: int) -> Any:
        """Read a plain value; null stands for a default of None."""
        if value is None and self.nullable:
            return None
        return self.kind.read(value, loc, dims)

    def schema(self) -> Schema:
        """The field's JSON Schema with description and default."""
        schema = self.kind.schema()
        if self.nullable and not self.required:
            schema = {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}
        schema["description"] = self.help
        if not self.required:
            schema["default"] = self.default
        return schema


_REQUIRED: Any = object()


def option(kind: Kind, help: str, default: Any = _REQUIRED) -> Any:  # noqa: A002
    """Declare a config field; without a default it is required. A default of None accepts null."""
    entry = Option(
        kind=kind,
        help=help,
        required=default is _REQUIRED,
        nullable=default is None,
        default=None if default is _REQUIRED else default,
    )
    return dataclasses.field(metadata={"option": entry})


def options(config: type[Any]) -> dict[str, Option]:
    """The options of a config dataclass, by field name."""
    return {field.name: field.metadata["option"] for field in dataclasses.fields(config)}
