"""Texts into settings: the environment, and the command line over it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from app.setting import PREFIX, GiB, KiB, MiB, Row
from app.settings import ROWS, Settings


class SettingsError(ValueError):
    """A setting has a value that it cannot have; the message is one line, fit to be shown."""


LEAST_RATE = 1e-6
"""Of a caller, one request in twelve days: who asks for less has mistyped it, and much less is no number
that can be worked with."""

_SUFFIXES = {"": 1, "KiB": KiB, "MiB": MiB, "GiB": GiB}
_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def _integer(text: str, row: Row) -> int:
    match = re.fullmatch(r"(-?\d+)(KiB|MiB|GiB)?", text)
    if match and (row.unit == "bytes" or not match[2]):
        return int(match[1]) * _SUFFIXES[match[2] or ""]
    if re.fullmatch(r"\d+(\.\d+)?e\d{1,2}", text) and float(text).is_integer():
        return int(float(text))
    raise ValueError


def _number(text: str, _: Row) -> float:
    # Python takes 1_000 for a number; of whole ones it is none here either.
    if "_" not in text and math.isfinite(value := float(text)):
        return value
    raise ValueError


def _truth(text: str, _: Row) -> bool:
    try:
        return _WORDS[text.lower()]
    except KeyError:
        raise ValueError from None


def _list(text: str, _: Row) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, text.split(",")) if part)


_PARSERS: dict[str, tuple[str, Callable[[str, Row], Any]]] = {
    "str": ("a text", lambda text, _: text),
    "int": ("an integer", _integer),
    "float": ("a number", _number),
    "bool": ("true or false", _truth),
    "tuple[str, ...]": ("a list of at least one, or nothing at all", _list),
}


def _expected(row: Row) -> str:
    """What a setting accepts, in words."""
    if row.choices:
        return " or ".join(row.choices)
    words = _PARSERS[row.kind][0]
    if row.kind in ("int", "float"):
        words += f" from {row.low:g} to {row.high:g}"
        words += ", or one with KiB, MiB or GiB after it" if row.unit == "bytes" else ""
    return words


_SERVICE_LINK = re.compile(
    rf"{PREFIX}(?:SERVICE_(?:HOST|PORT\w*)|PORT_\d+_(?:TCP|UDP)(?:_(?:ADDR|PORT|PROTO))?)"
)
"""What Kubernetes calls the variables in which it tells a container of a Service named `convoke`."""


def _ours(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that may be meant for us: one of Kubernetes' is named as our port is."""
    return {
        name: text
        for name, text in environ.items()
        if name.startswith(PREFIX)
        and not _SERVICE_LINK.fullmatch(name)
        and not (name == f"{PREFIX}PORT" and text.startswith(("tcp://", "udp://")))
    }


def parse(row: Row, text: str, source: str) -> Any:
    """The value that `text`, found in `source`, gives to a setting.

    Raises:
        SettingsError: the text is no value of the setting.
    """
    try:
        value = _PARSERS[row.kind][1](text.strip(), row)
    except ValueError:
        value = None
    # A list of commas is a mistake: without keys the service would be open to all.
    refused = value is None or (value == () and text) or (row.choices and value not in row.choices)
    if not refused and row.kind in ("int", "float"):
        refused = not row.low <= value <= row.high
    if refused:
        got = "another value" if row.secret else repr(text[:80])
        raise SettingsError(f"{source}: expected {_expected(row)}, got {got}")
    return _checked(row, value, source)


def _checked(row: Row, value: Any, source: str) -> Any:
    """The rules that are particular to one setting."""
    if row.name == "root_path" and value and not re.fullmatch(r"(/[\w.~-]+)+", value):
        raise SettingsError(f"{source}: expected a path as /convoke, got {value[:80]!r}")
    if row.name == "max_caller_rate" and 0 < value < LEAST_RATE:
        raise SettingsError(f"{source}: expected 0, or at least {LEAST_RATE:g}, got {value:g}")
    if row.name == "api_keys" and not all(re.fullmatch(r"[!-~]+", key) for key in value):
        raise SettingsError(f"{source}: expected keys of visible ASCII characters")
    if row.name == "cors_origins":
        for origin in value:
            if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", origin):
                raise SettingsError(
                    f"{source}: expected origins as https://example.org, got {origin[:80]!r}"
                )
            if not origin.isascii():
                # Browsers send names in this form, so that another would let nobody in.
                raise SettingsError(
                    f"{source}: expected origins in ASCII, names as https://xn--exmple-cua.org,"
                    f" got {origin[:80]!r}"
                )
    return value


def load(environ: Mapping[str, str], options: Mapping[str, str | None] | None = None) -> Settings:
    """Settings from the environment, overridden by the options of the command line.

    Args:
        environ: as `os.environ`.
        options: the text given for each setting by name; None where none was.

    Raises:
        SettingsError: a value is not one that its setting can have.
    """
    values: dict[str, Any] = {}
    environ = _ours(environ)
    for row in ROWS:
        given = (options or {}).get(row.name)
        if given is not None:
            values[row.name] = parse(row, given, row.option)
        elif row.variable in environ:
            values[row.name] = parse(row, environ[row.variable], row.variable)
    return Settings(**values)


def unknown(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none, as a misspelt name is."""
    known = {row.variable for row in ROWS}
    return sorted(name for name in _ours(environ) if name not in known)
