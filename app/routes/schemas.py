"""The parts of the OpenAPI document that all operations share."""

from __future__ import annotations

from typing import Any

from app.wire.elements import NAMES
from engine.resolve import FLOATS

Schema = dict[str, Any]

DTYPE: Schema = {
    "type": "string",
    "pattern": "^(float(16|32|64)|uint8|int(8|16|32|64)|[<>|]?(f[248]|u1|i[1248]))$",
    "examples": ["float32"],
    "description": (
        f"One of {', '.join(NAMES)}; the short forms of NumPy, as <f4, mean the same. Integers "
        "are for x, which is then converted to float32, and for indices."
    ),
}
ANSWERED: Schema = {
    "type": "string",
    "enum": [*FLOATS, "int64"],
    "description": "That of the request's tensors; float32 where x has integers, int64 of indices.",
}
SHAPE: Schema = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0},
    "description": "Length of each axis; only that of the samples may be 0.",
}
ANYTHING: Schema = {"type": "object", "additionalProperties": True}
"""A map of which this document says no more; said, since clients take bare ones for empty."""
MOST_AXES = 8
"""Of any tensor: what nested lists with more levels may hold says nothing to anybody."""

_NAMED = ["NaN", "Infinity", "-Infinity"]
_NUMBER: Schema = {"oneOf": [{"type": "number"}, {"enum": _NAMED}]}

PARAMETERS: Schema = {
    "X-Request-Id": {
        "name": "X-Request-Id",
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        "description": "Your name for the request, echoed; made up where absent.",
    },
    "X-Deadline-Ms": {
        "name": "X-Deadline-Ms",
        "in": "header",
        "schema": {"type": "integer", "minimum": 0},
        "description": "Milliseconds from the request's first byte, after which it is given up.",
    },
}


def _header(description: str, kind: str = "string", *, always: bool = True) -> Schema:
    return {"required": always, "schema": {"type": kind}, "description": description}


HEADERS: Schema = {
    "X-Request-Id": _header("The request's name."),
    "Server-Timing": _header(
        "Milliseconds in decode, queue, compute and encode; of a refusal also in total."
    ),
    "X-Content-Type-Options": _header("nosniff: the answer is what Content-Type says."),
}
"""What every answer has."""

_RETRY_AFTER = _header("Seconds after which to come again.", "integer")

REFUSAL_HEADERS: dict[str, Schema] = {
    "401": {"WWW-Authenticate": _header("How to send a key.")},
    "405": {"Allow": _header("The methods that the address knows.")},
    "415": {
        "Accept": _header("The media types that are read, where it is the type.", always=False),
        "Accept-Encoding": _header("identity, where it is the coding.", always=False),
    },
    "429": {"Retry-After": _RETRY_AFTER},
    "503": {"Retry-After": _RETRY_AFTER},
}
"""What refusals of a status have besides."""


def _wrong(levels: int) -> Schema:
    """What nothing is in nested lists with so many levels left: neither a number nor a list of such."""
    wrong: Schema = {"type": ["null", "boolean", "object"]}
    if not levels:
        wrong = {"type": [*wrong["type"], "array"], "items": {}}
    text: Schema = {"type": "string", "not": {"enum": _NAMED}}
    lists: list[Schema] = []
    if levels:
        lists.append({"type": "array", "items": {}, "contains": _wrong(levels - 1)})
    return {"anyOf": [wrong, text, *lists]}


def tensors() -> Schema:
    """A tensor in each codec: what is read, and what is answered, which has one form only."""
    fields = ["dtype", "shape", "data"]
    binary = {
        "description": "Binary: the bytes, little-endian and row-major, exactly as many as fit.",
        "contentMediaType": "application/octet-stream",
    }
    # What makes clients from this wants to be told of what an array is, takes none that is of itself, and
    # writes out each level of any other; so deeper levels are told by what they have not in them.
    deeper: Schema = {"type": "array", "items": {"not": _wrong(MOST_AXES - 2)}}
    listed: Schema = {"type": "array", "items": {"anyOf": [_NUMBER, deeper]}}
    base64 = {"type": "string", "contentEncoding": "base64", "description": "The bytes."}
    data = {"oneOf": [listed | {"description": "Nested as the shape says, or flat."}, base64]}
    nested = listed | {"description": "Nested as the shape says."}
    asked = base64 | {"description": "The bytes, where Accept has tensors=base64."}
    answered = {"dtype": ANSWERED, "shape": SHAPE}
    plain = object_of({"dtype": DTYPE, "shape": SHAPE, "data": binary}, fields)
    numpy = {"nd": {"const": True}, "type": DTYPE, "kind": {"description": "Nothing, as binary."}}
    numpy |= {"shape": SHAPE, "data": binary}
    about = "As the package msgpack-numpy writes it; its keys may be binary."
    return {
        "TensorInMsgpack": {
            "oneOf": [plain, object_of(numpy, list(numpy)) | {"description": about}]
        },
        "TensorInJson": {
            "oneOf": [
                object_of({"dtype": DTYPE, "shape": SHAPE, "data": data}, fields),
                listed | {"description": "Nested lists alone are float32."},
            ]
        },
        # In a tensor that has one of several forms, clients that are made from this know no field.
        "AnswerTensorInMsgpack": object_of(answered | {"data": binary}, fields)
        | {
            "description": "Where Accept has tensors=msgpack-numpy, the map of that package instead, "
            "whose keys are binary and so beyond a schema."
        },
        "AnswerTensorInJson": object_of(answered | {"data": {"oneOf": [nested, asked]}}, fields),
    }


def results() -> Schema:
    """What answers hold besides tensors."""
    count: Schema = {"type": "integer", "minimum": 0}
    pair: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    padding = {
        "type": "array",
        "items": pair,
        "description": "The resolved [low, high], one pair for each spatial axis.",
    }
    text: Schema = {"type": "string"}
    batch = object_of({"requests": count, "rows": count}, ["requests", "rows"])
    info = {
        "operation": text,
        "action": text,
        "algorithm": text,
        "padding": padding,
        "batch": batch,
    }
    plan = {
        "shapes": {"type": "object", "additionalProperties": SHAPE},
        "padding": padding,
        "receptive_field": {"type": "array", "items": count},
        "flops": object_of({"forward": count, "backward": count}, ["forward", "backward"]),
        "bytes": object_of(
            {"inputs": count, "outputs": count, "workspace": count},
            ["inputs", "outputs", "workspace"],
        ),
        "algorithm": text,
    }
    issue = {"loc": {"type": "array", "items": {"type": ["string", "integer"]}}, "msg": text}
    issue |= {"expected": text, "got": {"description": "What was found, in short."}}
    problem = {"type": text, "title": text, "status": count, "detail": text, "request_id": text}
    problem["errors"] = {"type": "array", "items": object_of(issue, ["loc", "msg"])}
    setting = {
        "type": ["string", "null"],
        "description": "The variable that moves it, if one does.",
    }
    limit = {"value": {"type": "number"}, "unit": text, "help": text, "setting": setting}
    return {
        "Operations": {"type": "object", "additionalProperties": _entry()},
        "Limits": {"type": "object", "additionalProperties": open_object(limit)},
        "Info": open_object(info),
        "Plan": open_object(plan),
        "Problem": open_object(problem),
    }


def _entry() -> Schema:
    """What the catalogue says of an operation."""
    text: Schema = {"type": "string"}
    role: Schema = {
        "enum": ["required", "optional", "output"],
        "description": "What it is to the action, where it has any part in it.",
    }
    tensor = open_object({"description": text, "forward": role, "backward": role}, ["description"])
    shapes: Schema = {"type": "object", "additionalProperties": SHAPE}
    entry = {
        "summary": text,
        "tensors": {"type": "object", "additionalProperties": tensor},
        "config": ANYTHING | {"description": "The JSON Schema of config."},
        "algorithms": {"type": "array", "items": text},
        "examples": {
            "type": "array",
            "items": open_object({"config": ANYTHING, "shapes": shapes}),
        },
    }
    alias = text | {"description": "Another name of it in the address, if it has one."}
    return open_object(entry | {"alias": alias}, list(entry))


def object_of(properties: Schema, required: list[str]) -> Schema:
    """An object with these fields and no others."""
    return open_object(properties, required) | {"additionalProperties": False}


def open_object(properties: Schema, required: list[str] | None = None) -> Schema:
    """An object of which more fields may come with later versions."""
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names}


def or_null(schema: Schema) -> Schema:
    """The same, or null, which is as good as leaving it out."""
    return {"anyOf": [schema, {"type": "null"}]}


def ref(kind: str, name: str) -> Schema:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}
