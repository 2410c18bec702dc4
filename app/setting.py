"""What one setting is: its name, default, unit, bounds and a sentence of help."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field
from typing import Any, cast

PREFIX = "CONVOKE_"

MOST = 10**19
"""Of a number that has no lower limit of its own. It is more than there can be of anything, so whoever
wants no limit can have it, and no more than floating point can be worked with."""

KiB = 1 << 10
MiB = 1 << 20
GiB = 1 << 30


@dataclass(frozen=True)
class Row:
    """What the table says of one setting.

    Attributes:
        kind: ``str``, ``int``, ``float``, ``bool`` or ``tuple[str, ...]`` (comma-separated).
        shown: the default as people read it.
        unit: of the value; empty where it has none.
        low, high: the least and the greatest value of a number.
        choices: the only values, where there are few.
        limit: whether it bounds what a request may ask for or send (``GET /v1/limits``).
        secret: whether its value is never shown.
    """

    name: str
    kind: str
    shown: str
    unit: str
    help: str
    low: float
    high: float
    choices: tuple[str, ...]
    limit: bool
    secret: bool

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.name.upper()

    @property
    def option(self) -> str:
        """The option of the command line."""
        return "--" + self.name.replace("_", "-")


def row(
    default: Any,
    help: str,  # noqa: A002 - the column's name
    *,
    unit: str = "",
    shown: str | None = None,
    low: float = 0,
    high: float = MOST,
    choices: tuple[str, ...] = (),
    limit: bool = False,
    secret: bool = False,
) -> Any:
    """One field of the table; a callable default is asked anew for each `Settings`."""
    metadata = {
        "help": help,
        "unit": unit,
        "shown": shown,
        "low": low,
        "high": high,
        "choices": choices,
        "limit": limit,
        "secret": secret,
    }
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


def shown(value: Any, unit: str) -> str:
    """A default as people read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if unit == "bytes":
        for size, suffix in ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")):
            if value and value % size == 0:
                return f"{value // size}{suffix}"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_row(entry: Field[Any]) -> Row:
    """What the table says of a field that `row` made."""
    given = dict(entry.metadata)
    if given["shown"] is None:
        default = entry.default if entry.default is not MISSING else cast(Any, entry).factory()
        given["shown"] = shown(default, given["unit"])
    return Row(name=entry.name, kind=str(entry.type), **given)
