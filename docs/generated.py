"""Writes the parts of the documents that are made from the code: `make docs`.

Such a part stands between two comments, `<!-- name -->` and `<!-- /name -->`. The tests fail when
one is out of date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import engine
from app.limits import table as limits_table
from app.problems import KINDS
from app.settings import table as settings_table
from docs import measured, metrics, modules

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "docs/api.md",
    "docs/kernels.md",
    "docs/operating.md",
    "docs/performance.md",
)

Schema = Mapping[str, Any]


def parts() -> dict[str, str]:
    """The text of each part by name."""
    catalogue = engine.operations()
    return {
        "settings": settings_table(),
        "fields": "\n".join(_operation(name, entry) for name, entry in catalogue.items()),
        "activations": _activations(catalogue["activation"]["config"]),
        "problems": _problems(),
        "fixed": limits_table(),
        "metrics": metrics.table(),
        "kernels": measured.kernels(),
        "limits": measured.limits(),
        "weak": measured.weak(),
        "service": measured.service(),
        "modules": modules.table(),
    }


def filled(document: str) -> str:
    """A document with its generated parts brought up to date; raises KeyError for one unknown."""
    made = parts()
    return re.sub(
        r"(<!-- ([a-z]+) -->\n).*?(<!-- /\2 -->)",
        lambda found: f"{found[1]}\n{made[found[2]]}\n{found[3]}",
        document,
        flags=re.DOTALL,
    )


def _operation(name: str, entry: Mapping[str, Any]) -> str:
    """One operation's section: its summary, and a row for each field of its config."""
    required = entry["config"].get("required", ())
    lines = [f"#### `{name}`", "", entry["summary"], ""]
    if name == "activation":
        return "\n".join(
            [*lines, "Its `config` is one of the activations [below](#activations).", ""]
        )
    lines += ["| field | value | default | meaning |", "| --- | --- | --- | --- |"]
    for field, schema in entry["config"]["properties"].items():
        value = ", ".join(dict.fromkeys(_values(schema)))
        if field == "activation":
            value = "an [activation](#activations) or null"
        default = "required" if field in required else f"`{json.dumps(schema['default'])}`"
        lines.append(f"| `{field}` | {value} | {default} | {_cell(schema['description'])} |")
    return "\n".join([*lines, ""])


def _values(schema: Schema) -> Iterator[str]:
    """What a schema accepts, in words."""
    if "anyOf" in schema or "oneOf" in schema:
        for one in schema.get("anyOf") or schema["oneOf"]:
            yield from _values(one)
    elif "enum" in schema:
        yield from (f"`{value}`" for value in schema["enum"])
    elif schema["type"] == "array":
        inner = " or ".join(dict.fromkeys(_values(schema["items"])))
        pair = schema.get("maxItems") == 2 == schema.get("minItems")
        yield "[low, high]" if pair else f"list of {inner}"
    else:
        kind: str = schema["type"]
        yield {"object": "map", "string": "text"}.get(kind, kind)


def _activations(config: Schema) -> str:
    lines = ["| name | parameters | value |", "| --- | --- | --- |"]
    for one in config["oneOf"]:
        fields = dict(one["properties"])
        name = fields.pop("name")["const"]
        given = ", ".join(f"`{key}` {json.dumps(s['default'])}" for key, s in fields.items())
        lines.append(f"| `{name}` | {given} | {_cell(one['description'])} |")
    return "\n".join(lines) + "\n"


def _problems() -> str:
    lines = ["| status | type | title |", "| --- | --- | --- |"]
    lines += [
        f"| {kind.status} | `/problems/{kind.slug}` | {kind.title} |"
        for kind in sorted(KINDS, key=lambda kind: kind.status)
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
