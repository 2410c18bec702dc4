"""The parts of the OpenAPI document that all operations share."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_DTYPES = ["float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64"]
DTYPE: Schema = {
    "type": "string",
    "examples": ["float32"],
    "description": (
        f"One of {', '.join(_DTYPES)}; the short forms of NumPy, as <f4, mean the same. Integers "
        "are for x, which is then converted to float32, and for indices."
    ),
}
SHAPE: Schema = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0},
    "description": "Length of each axis; only that of the samples may be 0.",
}
_NUMBER: Schema = {
    "oneOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}],
}

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
HEADERS: Schema = {
    "X-Request-Id": {"schema": {"type": "string"}, "description": "The request's name."},
    "Server-Timing": {
        "schema": {"type": "string"},
        "description": "Milliseconds in decode, queue, compute and encode; of a refusal also in total.",
    },
}


def tensors() -> Schema:
    """A tensor in each codec."""
    fields = ["dtype", "shape", "data"]
    binary = {
        "description": "Binary: the bytes, little-endian and row-major, exactly as many as fit.",
        "contentMediaType": "application/octet-stream",
    }
    # What makes clients from this wants to be told of what an array is, even if it may be of anything.
    deeper: Schema = {"type": "array", "items": {}}
    listed: Schema = {"type": "array", "items": {"anyOf": [_NUMBER, deeper]}}
    base64 = {"type": "string", "contentEncoding": "base64", "description": "The bytes."}
    data = {"oneOf": [listed | {"description": "Nested as the shape says, or flat."}, base64]}
    return {
        "TensorInMsgpack": object_of({"dtype": DTYPE, "shape": SHAPE, "data": binary}, fields),
        "TensorInJson": {
            "oneOf": [
                object_of({"dtype": DTYPE, "shape": SHAPE, "data": data}, fields),
                listed | {"description": "Nested lists alone are float32."},
            ]
        },
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
        "Limits": {"type": "object", "additionalProperties": open_object(limit)},
        "Info": open_object(info),
        "Plan": open_object(plan),
        "Problem": open_object(problem),
    }


def object_of(properties: Schema, required: list[str]) -> Schema:
    """An object with these fields and no others."""
    return open_object(properties, required) | {"additionalProperties": False}


def open_object(properties: Schema, required: list[str] | None = None) -> Schema:
    """An object of which more fields may come with later versions."""
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names}


def ref(kind: str, name: str) -> Schema:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}
