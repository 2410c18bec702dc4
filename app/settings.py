"""Every setting, in one table: the fields of `Settings`.

A field's name gives its environment variable (``max_body_bytes`` is ``CONVOKE_MAX_BODY_BYTES``) and
its option (``--max-body-bytes``). The documentation, ``convoke settings``, the command line and
``GET /v1/limits`` are made from the table, so a setting is added by adding a field.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from app.setting import GiB, KiB, MiB, Row, as_row, row, shown
from app.shares import share
from app.workers.cpus import available_cpus


def _room(most: int, parts: int, help: str) -> Any:  # noqa: A002 - the column's name
    """A limit in bytes that is smaller by itself where there is little memory."""
    told = f"{shown(most, 'bytes')}, at most 1/{parts} of memory"
    return row(share(most, parts), help, unit="bytes", shown=told, limit=True)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one server, all of one value each."""

    host: str = row("127.0.0.1", "Address to listen on.")
    port: int = row(8000, "Port to listen on; 0 takes a free one.", high=65535)
    workers: int = row(
        available_cpus,
        "Worker processes that compute. One more takes small work while all of these are busy with large; "
        "with 0, a thread of the server process computes.",
        shown="the CPUs this process may use",
        high=1024,
    )
    root_path: str = row(
        "", "Path under which a proxy publishes the service, as `/convoke`, and which it takes off."
    )
    api_keys: tuple[str, ...] = row(
        (),
        "Keys, separated by commas, of which requests to `/v1/` must bear one; none: open to all.",
        secret=True,
    )
    cors_origins: tuple[str, ...] = row(
        (), "Origins, separated by commas, whose pages may call the service; `*` for all."
    )

    keep_awake: bool = row(
        True,
        "Whether idle processors are kept from sleeping while there is work, where Linux lets this process "
        "ask for it (`/dev/cpu_dma_latency`).",
    )

    max_body_bytes: int = _room(256 * MiB, 48, "Largest request body.")
    max_json_bytes: int = _room(
        16 * MiB, 256, "Largest request body in JSON, which costs more to read."
    )
    max_json_waiting_bytes: int = _room(
        64 * MiB,
        64,
        "Large bodies in JSON that wait to be read, or are read, a quarter of it for those below 256 KiB; "
        "beyond it new ones are refused.",
    )
    max_header_bytes: int = row(
        64 * KiB, "Largest request line and headers together.", unit="bytes", low=KiB, limit=True
    )
    max_held_bytes: int = _room(
        2 * GiB,
        4,
        "Bodies held at once, of all requests and answers; beyond it new ones are refused. Of answers that "
        "callers do not take, as much again at most does not count.",
    )
    max_connections: int = row(
        1000,
        "Connections held at once; fewer where the system allows too few open files.",
        low=1,
        limit=True,
    )
    max_address_connections: int = row(
        0,
        "Connections of one address (of IPv6: one /64) held at once; 0: no limit, as behind a proxy, "
        "where all callers have its address.",
        limit=True,
    )
    max_tensor_rank: int = row(8, "Most axes of a tensor.", low=1, high=32, limit=True)
    max_output_bytes: int = _room(512 * MiB, 32, "Largest output of one request, from its plan.")
    max_workspace_bytes: int = _room(1 * GiB, 16, "Largest workspace of a plan, on each thread.")
    max_tensor_bytes: int = _room(
        768 * MiB, 24, "Largest inputs and outputs together of one request."
    )
    max_json_numbers: int = row(
        share(1 << 22, KiB),
        "Most numbers in the lists of one JSON body, sent or answered.",
        shown=f"{1 << 22}, at most one per KiB of memory",
        limit=True,
    )
    max_flops: int = row(
        10**12,
        "Most floating-point operations of one request, from its plan; a multiply-add is 2.",
        unit="FLOP",
        limit=True,
    )
    max_steps: int = row(
        10**7,
        "Most array operations that the plan of one request may take; very long windows take one for each "
        "of their elements.",
        limit=True,
    )
    max_queue_requests: int = row(
        512, "Requests waiting for a worker or running.", low=1, limit=True
    )
    max_queue_bytes: int = _room(
        2 * GiB, 8, "Tensors of the requests waiting for a worker or running."
    )
    max_caller_rate: float = row(
        0.0,
        "Requests (POST) per second of one caller, told by its key, else its address (of IPv6: its /64); "
        "at least 1e-6, or 0: no limit.",
        unit="1/s",
        limit=True,
    )
    max_caller_burst: int = row(
        20, "Requests that a caller may send at once after a rest.", low=1, limit=True
    )
    max_caller_requests: int = row(
        0, "Requests of one caller under way at once; 0: no limit.", limit=True
    )
    default_deadline_ms: int = row(
        0, "Deadline of a request that names none; 0: no deadline.", unit="ms", limit=True
    )
    max_deadline_ms: int = row(
        600_000, "Longest deadline; a later one is brought forward.", unit="ms", low=1, limit=True
    )

    batching: bool = row(
        True,
        "Whether waiting requests with the same plan and equal parameters are computed in one call, and "
        "several short calls are sent to a worker together.",
    )
    max_batch_requests: int = row(64, "Most requests in one call.", low=1, limit=True)
    max_batch_rows: int = row(
        1024, "Most samples in one call of several requests.", low=1, limit=True
    )
    max_batch_bytes: int = _room(
        64 * MiB, 64, "Largest inputs and outputs together of one call of several requests."
    )

    max_compute_s: float = row(
        600.0,
        "Time after which a call is ended; a request that was alone in two such is answered 500.",
        unit="s",
        low=1,
        limit=True,
    )
    header_timeout_s: float = row(
        10.0, "Longest wait for a request's headers to arrive whole.", unit="s", low=0.1, limit=True
    )
    body_timeout_s: float = row(
        120.0,
        "Longest wait for a request with a body to arrive whole, from its first byte on.",
        unit="s",
        low=0.1,
        limit=True,
    )
    answer_timeout_s: float = row(
        60.0,
        "Longest time in which a client takes nothing of its answer.",
        unit="s",
        low=0.1,
        limit=True,
    )
    keep_alive_s: int = row(65, "How long an idle connection is kept open.", unit="s", low=1)
    drain_timeout_s: float = row(
        30.0, "Longest wait at the end for the requests under way to be answered.", unit="s"
    )
    log_level: str = row(
        "info",
        "Least severe log lines written: debug, info, warning or error.",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = row("json", "Form of the log lines: json or text.", choices=("json", "text"))


ROWS: tuple[Row, ...] = tuple(map(as_row, fields(Settings)))
"""The table."""


def table() -> str:
    """The table in Markdown, as README.md has it."""
    lines = [
        "| variable | option | default | unit | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{each.variable}` | `{each.option}` | {_code(each.shown)} | {each.unit} | {each.help} |"
        for each in ROWS
    ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    if not text:
        return "none"
    return text if " " in text else f"`{text}`"
