"""Every limit that a request can hit: those that settings move, and those that are fixed."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from app.headsize import MOST_FIELDS
from app.settings import ROWS, Settings
from app.wire import DecodeLimits
from app.wire.elements import LARGEST_AXIS, LARGEST_TENSOR
from app.wire.read_json import MOST_LEVELS


class Fixed(NamedTuple):
    """A limit that no setting moves, in the words of the table of settings."""

    name: str
    value: int
    unit: str
    help: str


FIXED: Final = (
    Fixed(
        "max_body_values",
        DecodeLimits.max_values,
        "",
        "Most maps, lists and their entries in one body, tensor data in JSON aside.",
    ),
    Fixed(
        "max_body_levels",
        DecodeLimits.max_depth,
        "",
        "Most maps and lists within each other in one field of a body, tensors aside.",
    ),
    Fixed(
        "max_text_length",
        DecodeLimits.max_text,
        "characters",
        "Longest name or text in a body, base64 aside; in msgpack bytes of UTF-8.",
    ),
    Fixed(
        "max_json_lists",
        DecodeLimits.max_lists,
        "",
        "Most lists in one JSON body, those of tensors included.",
    ),
    Fixed(
        "max_json_levels",
        MOST_LEVELS,
        "",
        "Most maps and lists within each other in one JSON body, those of tensors included.",
    ),
    Fixed(
        "max_header_fields", MOST_FIELDS, "", "Most headers of one request, its trailers included."
    ),
    Fixed("max_axis_length", LARGEST_AXIS, "", "Longest axis of a shape."),
    Fixed(
        "max_shape_bytes",
        LARGEST_TENSOR,
        "bytes",
        "Most bytes of a shape, 8 for each number, axes of length 0 left out.",
    ),
)
"""What reading a request may cost, whatever the settings."""


def limits(settings: Settings) -> dict[str, dict[str, Any]]:
    """What `GET /v1/limits` answers: every limit by name, with its value, unit, meaning and setting."""
    moved = {
        each.name: {
            "value": getattr(settings, each.name),
            "unit": each.unit,
            "help": each.help,
            "setting": each.variable,
        }
        for each in ROWS
        if each.limit
    }
    return moved | {
        name: {"value": value, "unit": unit, "help": meaning, "setting": None}
        for name, value, unit, meaning in FIXED
    }


def table() -> str:
    """The fixed ones in Markdown, as docs/api.md has them."""
    lines = ["| limit | value | unit | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{each.name}` | {each.value} | {each.unit} | {each.help} |" for each in FIXED]
    return "\n".join(lines) + "\n"
