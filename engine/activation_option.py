"""The config value that names an activation: a name, or a map with its name and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import EngineError, InvalidValue, Loc, MissingField, fail, merged
from engine.kernels.activations.table import TABLE, Activation
from engine.options import Flag, Number, Schema, unknown_fields
from engine.plans import compute_dtype
from engine.words import did_you_mean, one_of

PARAMETERS = {
    "alpha": "Slope or scale of the curved part; see the activation's formula.",
    "beta": "Offset before clipping.",
    "approximate": "True takes the form with tanh instead of the error function.",
    "slope": "Factor.",
    "intercept": "Offset.",
}


FORMS = {"tanh": "true", "none": "false"}
"""What PyTorch has for the two values of `approximate`."""


@dataclass(frozen=True)
class ActivationKind:
    """Reads a name, or ``{"name": …, parameters}``."""

    def read(self, value: object, loc: Loc, dims: int) -> Activation:
        """The activation with every parameter settled."""
        if isinstance(value, str):
            return _settled(_known(value, loc), {}, loc, dims)
        if not isinstance(value, Mapping):
            expected = "a name or a map with a name"
            raise fail(InvalidValue, loc, "not an activation", expected, value)
        return self.read_map(value, loc, dims)

    def read_map(self, value: Mapping[Any, object], loc: Loc, dims: int) -> Activation:
        """The activation that a map names."""
        if "name" not in value:
            raise _nameless(value, loc)
        return _settled(_known(value["name"], (*loc, "name")), value, loc, dims)

    def schema(self) -> Schema:
        """The JSON Schema of a name, or of a map for each name."""
        return {"anyOf": [{"enum": list(TABLE)}, *activation_schemas()]}


def _nameless(value: Mapping[Any, object], loc: Loc) -> EngineError:
    """The error of a map that names no activation, and of its keys that none of them has."""
    missing = fail(MissingField, (*loc, "name"), "required", "the activation's name", None)
    return merged([missing, *unknown_fields(value, ["name", *PARAMETERS], loc)])


def _known(name: object, loc: Loc) -> str:
    """The name of an activation that there is."""
    if isinstance(name, str) and name in TABLE:
        return name
    msg = f"no such activation{did_you_mean(name, TABLE)}"
    raise fail(InvalidValue, loc, msg, one_of(TABLE), name)


def _settled(name: str, given: Mapping[Any, object], loc: Loc, dims: int) -> Activation:
    """The activation of that name with its parameters, of which those not given have defaults."""
    defaults = dict(TABLE[name].defaults)
    errors = unknown_fields(given, ["name", *defaults], loc, f"{name} has no such field")
    settled: list[tuple[str, float | bool]] = []
    for key, default in defaults.items():
        kind = Flag() if isinstance(default, bool) else Number()
        value = given.get(key, default)
        try:
            if key == "approximate" and isinstance(value, str) and value in FORMS:
                msg = f"not a boolean; did you mean {FORMS[value]}?"
                raise fail(InvalidValue, (*loc, key), msg, "true or false", value)
            settled.append((key, kind.read(value, (*loc, key), dims)))
        except EngineError as error:
            errors.append(error)
    if errors:
        raise merged(errors)
    return Activation(name, tuple(settled))


def require_held(activation: Activation, dtype: str, loc: Loc) -> None:
    """Raise InvalidValue for parameters that the dtype that arithmetic runs in cannot hold.

    An infinite factor would turn 0 into NaN, and one that is rounded to 0 would do so to infinity.
    """
    compute = compute_dtype(dtype)
    held = np.finfo(compute)
    least, most = float(held.smallest_subnormal), float(held.max)
    errors: list[EngineError] = [
        fail(
            InvalidValue,
            (*loc, name),
            "the dtype cannot hold it",
            f"0, or {least} to {most} with either sign, in {compute}",
            value,
        )
        for name, value in activation.parameters
        if value and not least <= abs(value) <= most
    ]
    if errors:
        raise merged(errors)


def activation_schemas() -> list[Schema]:
    """One map schema for every activation."""
    return [
        {
            "type": "object",
            "description": entry.help,
            "properties": {
                "name": {"const": name, "description": f"The activation: {entry.help}."},
                **{
                    key: {
                        "type": "boolean" if isinstance(default, bool) else "number",
                        "default": default,
                        "description": PARAMETERS[key],
                    }
                    for key, default in entry.defaults
                },
            },
            "required": ["name"],
            "additionalProperties": False,
        }
        for name, entry in TABLE.items()
    ]


ACTIVATION = ActivationKind()
