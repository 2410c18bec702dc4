"""The description of the HTTP interface, OpenAPI 3.1, made from the catalogue and the settings.

One path for each operation and action: a single templated path could not say which config belongs
to which operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import __version__
from app.problems import KINDS
from app.routes.examples import example
from app.routes.keys import ACTIONS
from app.routes.schemas import (
    ANYTHING,
    DTYPE,
    HEADERS,
    PARAMETERS,
    REFUSAL_HEADERS,
    SHAPE,
    Schema,
    object_of,
    or_null,
    ref,
    results,
    tensors,
)
from app.settings import Settings
from app.wire import MEDIA_TYPES

_JSON = "application/json"
_FORMS = {_JSON: MEDIA_TYPES[_JSON], **MEDIA_TYPES}
"""What bodies come in. Viewers offer the first form, and what is typed into one is JSON."""

_DESCRIPTION = """Outputs and gradients of convolution and pooling layers.

Bodies are msgpack (`application/vnd.msgpack`) or JSON; the answer has the form that `Accept` asks
for, else that of the request. With the parameter `tensors=msgpack-numpy` an answer in msgpack has
its tensors as the package of that name writes them, with `tensors=base64` an answer in JSON has
their bytes in base64. Every refusal is a problem (RFC 9457) that names each field at fault."""


_KEY: Schema = {
    "type": "http",
    "scheme": "bearer",
    "description": "One of the service's keys, as it is: the viewer puts `Bearer` before it.",
}

_REFUSALS: dict[str, list[str]] = {}
for _kind in sorted(KINDS, key=lambda kind: kind.status):
    _REFUSALS.setdefault(str(_kind.status), []).append(_kind.title)

_ANYWHERE = ("400", "408", "413", "429", "431", "500", "503")
"""What any request may be answered, whatever it asks for."""


def describe(catalogue: Mapping[str, Mapping[str, Any]], settings: Settings) -> Schema:
    """The whole document."""
    paths: Schema = {}
    for name, entry in catalogue.items():
        for action in ACTIONS:
            paths[f"/v1/{name}/{action}"] = {"post": _operation(name, entry, action, settings)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Convoke", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": settings.root_path or "/"}],
        "tags": [
            {"name": name, "description": entry["summary"]} for name, entry in catalogue.items()
        ],
        "paths": paths | _documents(settings),
        "components": {
            "schemas": tensors() | results() | _configs(catalogue),
            "parameters": PARAMETERS,
            "headers": HEADERS | {k: v for own in REFUSAL_HEADERS.values() for k, v in own.items()},
            "responses": {status: _refusal(status, titles) for status, titles in _REFUSALS.items()},
        }
        | ({"securitySchemes": {"key": _KEY}} if settings.api_keys else {}),
    }


def _operation(name: str, entry: Mapping[str, Any], action: str, settings: Settings) -> Schema:
    return {
        "operationId": f"{name}_{action}",
        "tags": [name],
        "summary": f"{name}: {action}",
        "description": _SUMMARIES[action],
        "parameters": [ref("parameters", each) for each in PARAMETERS],
        "security": _security(settings),
        "requestBody": {"required": True, "content": _request(name, entry, action)},
        "responses": {
            "200": {
                "description": _ANSWERS[action],
                "headers": _headers(),
                "content": _answer(entry, action),
            }
        }
        | {status: ref("responses", status) for status in _REFUSALS},
    }


_SUMMARIES = {
    "forward": "Compute the layer's output.",
    "backward": "Compute gradients of the loss from `dy`, that with respect to the output.",
    "plan": "Work out shapes, padding and cost without computing anything.",
}
_ANSWERS = {
    "forward": "The output, and how it was computed.",
    "backward": "The gradients, and how they were computed.",
    "plan": "What the layer would give and cost.",
}


def _security(settings: Settings) -> list[Schema]:
    return [{"key": []}] if settings.api_keys else []


def _request(name: str, entry: Mapping[str, Any], action: str) -> Schema:
    content: Schema = {}
    for media_type, codec in _FORMS.items():
        plan = action == "plan"
        body = _plan_request(name, entry) if plan else _compute_request(name, entry, codec, action)
        content[media_type] = {"schema": body}
    content[_JSON]["examples"] = {
        f"{name} {number}": {
            "summary": ", ".join(f"{field} {value}" for field, value in given["config"].items()),
            "value": example(name, given, action),
        }
        for number, given in enumerate(entry["examples"], 1)
    }
    return content


def _compute_request(name: str, entry: Mapping[str, Any], codec: str, action: str) -> Schema:
    tensor = _tensor("Tensor", codec)
    roles = _roles(entry, action)
    properties = {"config": _config(name, entry)}
    properties |= {
        each: tensor if role == "required" else or_null(tensor)
        for each, role in roles.items()
        if role != "output"
    }
    if action == "backward":
        wants = {
            "type": "array",
            "items": {"enum": [each for each, role in roles.items() if role == "output"]},
            "minItems": 1,
            "description": "What to answer with; every gradient that can be given where absent.",
        }
        properties["wants"] = or_null(wants)
    required = [each for each, role in roles.items() if role == "required"]
    either = _EITHER if roles.get("x") == roles.get("indices") == "optional" else {}
    return object_of(properties, required + _required(entry)) | either


# Not as anyOf: what makes clients from that reads alternatives to the whole body, and loses its fields.
_EITHER: Schema = {
    "description": "Takes x or indices, or both; without x, config.input_shape is required.",
    "if": {"properties": {"x": {"type": "null"}}},
    "then": {"required": ["indices"], "properties": {"indices": {"not": {"type": "null"}}}},
}
"""That of x and indices one is there."""


def _config(name: str, entry: Mapping[str, Any]) -> Schema:
    own = ref("schemas", f"{name}.config")
    return own if _required(entry) else or_null(own)


def _required(entry: Mapping[str, Any]) -> list[str]:
    return ["config"] if entry["config"]["required"] else []


def _roles(entry: Mapping[str, Any], action: str) -> dict[str, str]:
    """What each tensor is to an action: `required`, `optional` or `output`."""
    tensors = entry["tensors"].items()
    return {name: about[action] for name, about in tensors if action in about}


def _plan_request(name: str, entry: Mapping[str, Any]) -> Schema:
    roles = {each: role for each, role in _roles(entry, "forward").items() if role != "output"}
    needed = [each for each, role in roles.items() if role == "required"]
    shapes = object_of(dict.fromkeys(roles, SHAPE), needed)
    properties = {"config": _config(name, entry), "shapes": shapes, "dtype": DTYPE}
    return object_of(properties, ["shapes", *_required(entry)])


def _answer(entry: Mapping[str, Any], action: str) -> Schema:
    if action == "plan":
        return {media_type: {"schema": ref("schemas", "Plan")} for media_type in _FORMS}
    content: Schema = {}
    outputs = [each for each, role in _roles(entry, action).items() if role == "output"]
    for media_type, codec in _FORMS.items():
        properties = dict.fromkeys(outputs, _tensor("AnswerTensor", codec)) | {
            "info": ref("schemas", "Info")
        }
        always = ["y", "info"] if action == "forward" else ["info"]
        content[media_type] = {"schema": object_of(properties, always)}
    return content


def _tensor(kind: str, codec: str) -> Schema:
    return ref("schemas", f"{kind}In{codec.capitalize()}")


def _configs(catalogue: Mapping[str, Mapping[str, Any]]) -> Schema:
    return {f"{name}.config": entry["config"] for name, entry in catalogue.items()}


def _documents(settings: Settings) -> Schema:
    table = {
        "/v1/operations": "The catalogue: each operation's tensors, config schema and examples.",
        "/v1/limits": "Every limit with its value, unit and meaning.",
        "/version": "What is running.",
        "/livez": "The process answers.",
        "/readyz": "New work is taken; 503 where it is not.",
    }
    paths: Schema = {path: {"get": _document(path, text)} for path, text in table.items()}
    for path in ("/v1/operations", "/v1/limits"):
        paths[path]["get"]["security"] = _security(settings)
        paths[path]["get"]["responses"] |= {
            status: ref("responses", status) for status in ("401", "403")
        }
    for path, name in (("/v1/operations", "Operations"), ("/v1/limits", "Limits")):
        content = paths[path]["get"]["responses"]["200"]["content"]
        content[_JSON]["schema"] = ref("schemas", name)
    paths["/metrics"] = {"get": _document("/metrics", "Metrics in Prometheus' text format.")}
    paths["/metrics"]["get"]["responses"]["200"]["content"] = {
        "text/plain": {"schema": {"type": "string"}}
    }
    return paths


def _document(path: str, text: str) -> Schema:
    return {
        "operationId": path.strip("/").replace("/", "_"),
        "tags": ["service"],
        "summary": text,
        "security": [],
        "responses": {
            "200": {
                "description": text,
                "headers": _headers(),
                "content": {_JSON: {"schema": ANYTHING}},
            }
        }
        | {status: ref("responses", status) for status in _ANYWHERE},
    }


def _refusal(status: str, titles: list[str]) -> Schema:
    return {
        "description": "; ".join(dict.fromkeys(titles)) + ".",
        "headers": _headers(status),
        "content": {"application/problem+json": {"schema": ref("schemas", "Problem")}},
    }


def _headers(status: str = "200") -> Schema:
    return {each: ref("headers", each) for each in (*HEADERS, *REFUSAL_HEADERS.get(status, ()))}
