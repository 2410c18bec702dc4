"""Every setting, in one table: the fields of `Settings`.

A field's name gives its environment variable (``max_body_bytes`` is ``CONVOKE_MAX_BODY_BYTES``) and
its option (``--max-body-bytes``). The documentation, ``convoke settings``, the command line and
``GET /v1/limits`` are made from the table, so a setting is added by adding a field.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, cast

from app.workers.cpus import available_cpus

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


def _row(
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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one server, all of one value each."""

    host: str = _row("127.0.0.1", "Address to listen on.")
    port: int = _row(8000, "Port to listen on; 0 takes a free one.", high=65535)
    workers: int = _row(
        available_cpus,
        "Worker processes that compute, beside one for small work while these hold large; "
        "0 computes on a thread of the server process.",
        shown="the CPUs this process may use",
        high=1024,
    )
    root_path: str = _row(
        "", "Path under which a proxy publishes the service, as `/convoke`, and which it takes off."
    )
    api_keys: tuple[str, ...] = _row(
        (),
        "Keys, separated by commas, of which requests to `/v1/` must bear one; none: open to all.",
        secret=True,
    )
    cors_origins: tuple[str, ...] = _row(
        (), "Origins, separated by commas, whose pages may call the service; `*` for all."
    )

    max_body_bytes: int = _row(256 * MiB, "Largest request body.", unit="bytes", limit=True)
    max_json_bytes: int = _row(
        16 * MiB,
        "Largest request body in JSON, which costs more to read.",
        unit="bytes",
        limit=True,
    )
    max_json_waiting_bytes: int = _row(
        64 * MiB,
        "Large bodies in JSON that wait to be read, or are read; beyond it new ones are refused.",
        unit="bytes",
        limit=True,
    )
    max_header_bytes: int = _row(
        64 * KiB, "Largest request line and headers together.", unit="bytes", low=KiB, limit=True
    )
    max_held_bytes: int = _row(
        2 * GiB,
        "Bodies held at once, of all requests and answers; beyond it new ones are refused.",
        unit="bytes",
        limit=True,
    )
    max_connections: int = _row(
        1000,
        "Connections held at once; fewer where the system allows too few open files.",
        low=1,
        limit=True,
    )
    max_address_connections: int = _row(
        0,
        "Connections of one address (of IPv6: one /64) held at once; 0: no limit, as behind a proxy, "
        "where all callers have its address.",
        limit=True,
    )
    max_tensor_rank: int = _row(8, "Most axes of a tensor.", low=1, high=32, limit=True)
    max_output_bytes: int = _row(
        512 * MiB, "Largest output of one request, from its plan.", unit="bytes", limit=True
    )
    max_workspace_bytes: int = _row(
        1 * GiB, "Largest workspace of a plan, on each thread.", unit="bytes", limit=True
    )
    max_tensor_bytes: int = _row(
        768 * MiB,
        "Largest inputs and outputs together of one request.",
        unit="bytes",
        limit=True,
    )
    max_json_numbers: int = _row(
        1 << 22, "Most numbers in the lists of one JSON body, sent or answered.", limit=True
    )
    max_flops: int = _row(
        10**12,
        "Most floating-point operations of one request, from its plan; a multiply-add is 2.",
        unit="FLOP",
        limit=True,
    )
    max_steps: int = _row(
        10**7,
        "Most array passes of one request, from its plan; very long windows take one for every tap.",
        limit=True,
    )
    max_queue_requests: int = _row(
        512, "Requests waiting for a worker or running.", low=1, limit=True
    )
    max_queue_bytes: int = _row(
        1 * GiB,
        "Tensors of the requests waiting for a worker or running.",
        unit="bytes",
        limit=True,
    )
    max_caller_rate: float = _row(
        0.0,
        "Requests per second of one caller, told by its key, else its address; 0: no limit.",
        unit="1/s",
        limit=True,
    )
    max_caller_burst: int = _row(
        20, "Requests that a caller may send at once after a rest.", low=1, limit=True
    )
    max_caller_requests: int = _row(
        0, "Requests of one caller under way at once; 0: no limit.", limit=True
    )
    default_deadline_ms: int = _row(
        0, "Deadline of a request that names none; 0: no deadline.", unit="ms", limit=True
    )
    max_deadline_ms: int = _row(
        600_000, "Longest deadline; a later one is brought forward.", unit="ms", low=1, limit=True
    )

    batching: bool = _row(
        True,
        "Whether requests with equal plans and parameters share a call, and brief ones a way to a worker.",
    )
    max_batch_requests: int = _row(64, "Most requests in one call.", low=1, limit=True)
    max_batch_rows: int = _row(
        1024, "Most samples in one call of several requests.", low=1, limit=True
    )
    max_batch_bytes: int = _row(
        64 * MiB,
        "Largest inputs and outputs together of one call of several requests.",
        unit="bytes",
        limit=True,
    )

    max_compute_s: float = _row(
        600.0, "Time after which a call counts as stuck.", unit="s", low=1, limit=True
    )
    header_timeout_s: float = _row(
        10.0, "Longest wait for a request's headers to arrive whole.", unit="s", low=0.1, limit=True
    )
    body_timeout_s: float = _row(
        120.0, "Longest wait for a request's body to arrive whole.", unit="s", low=0.1, limit=True
    )
    answer_timeout_s: float = _row(
        60.0,
        "Longest time in which a client takes nothing of its answer.",
        unit="s",
        low=0.1,
        limit=True,
    )
    keep_alive_s: int = _row(65, "How long an idle connection is kept open.", unit="s", low=1)
    drain_timeout_s: float = _row(
        30.0, "Longest wait at the end for the requests under way to be answered.", unit="s"
    )
    log_level: str = _row(
        "info", "Least severe log lines written.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _row("json", "Form of the log lines.", choices=("json", "text"))


def _shown(value: Any, unit: str) -> str:
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


def _as_row(entry: Field[Any]) -> Row:
    given = dict(entry.metadata)
    if given["shown"] is None:
        default = entry.default if entry.default is not MISSING else cast(Any, entry).factory()
        given["shown"] = _shown(default, given["unit"])
    return Row(name=entry.name, kind=str(entry.type), **given)


ROWS: tuple[Row, ...] = tuple(map(_as_row, fields(Settings)))
"""The table."""


def limits(settings: Settings) -> dict[str, dict[str, Any]]:
    """What `GET /v1/limits` answers: every limit by name, with its value, unit and meaning."""
    return {
        row.name: {
            "value": getattr(settings, row.name),
            "unit": row.unit,
            "help": row.help,
            "setting": row.variable,
        }
        for row in ROWS
        if row.limit
    }


def table() -> str:
    """The table in Markdown, as README.md has it."""
    lines = [
        "| variable | option | default | unit | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{row.variable}` | `{row.option}` | {_code(row.shown)} | {row.unit} | {row.help} |"
        for row in ROWS
    ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    if not text:
        return "none"
    return text if " " in text else f"`{text}`"
