"""A whole config: read from a plain map, with every field that is wrong named at once, and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from engine.errors import EngineError, InvalidValue, MissingField, fail, merged
from engine.options import Option, Schema, options, unknown_fields

C = TypeVar("C")

LOC: Final = ("config",)
"""Where a config stands in a request."""

ACCEPTED = {"integer": "an integer", "array": "a list of one per spatial axis"}


def read_config(kind: type[C], values: object, dims: int) -> C:
    """Read a plain mapping into a config dataclass, reporting every field that is wrong at once.

    Raises:
        InvalidValue, UnknownField, MissingField: by kind of mistake; InvalidRequest where mixed.
    """
    values = fields_of(values)
    table = options(kind)
    errors = unknown_fields(values, table, LOC)
    known: dict[str, Any] = {}
    for name, entry in table.items():
        value = values.get(name, entry.default)
        try:
            if name not in values and entry.required:
                raise fail(MissingField, (*LOC, name), "required", _accepted(entry), None)
            known[name] = entry.read(value, (*LOC, name), dims)
        except EngineError as error:
            errors.append(error)
    if errors:
        raise merged(errors)
    return kind(**known)


def fields_of(values: object) -> Mapping[Any, Any]:
    """A config as a map of its fields, empty where it is None; raises InvalidValue for what is no map."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise fail(InvalidValue, LOC, "not a map", "a map of fields", type(values).__name__)
    return values


def _accepted(entry: Option) -> str:
    """What a required field takes, in words."""
    schema = entry.schema()
    kinds = [one["type"] for one in schema.get("anyOf", [schema])]
    return " or ".join(ACCEPTED.get(kind, kind) for kind in kinds)


def config_schema(kind: type[Any]) -> Schema:
    """The JSON Schema of a whole config."""
    table = options(kind)
    return {
        "type": "object",
        "properties": {name: entry.schema() for name, entry in table.items()},
        "required": [name for name, entry in table.items() if entry.required],
        "additionalProperties": False,
    }
