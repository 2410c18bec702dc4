"""Log lines: one JSON object each, written by a thread so that a stuck reader stops nobody.

A line holds ids, names, times and sizes; never tensor data and never a key.
"""

from __future__ import annotations

import json
import logging
import os
import select
import threading
from collections import deque
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from time import time
from typing import Any

import orjson

CAPACITY = 10_000
"""Lines that wait to be written; beyond it, lines are dropped and counted."""

GATHER_S = 0.02
"""How long lines gather before they are written together."""

requests = logging.getLogger("convoke.requests")
"""One line per request."""

server = logging.getLogger("convoke.server")
"""Everything else."""


def request(fields: dict[str, Any]) -> None:
    """Log a request, past the levels of `logging` where lines are JSON: they cost several lines."""
    if _straight is None:
        requests.info("request", extra={"fields": fields})
    else:
        _straight.put(_line(time(), "info", requests.name, "request", fields))


_straight: BackgroundHandler | None = None
"""Where lines about requests go, if `configure` has settled it."""


def _line(created: float, level: str, logger: str, message: str, fields: dict[str, Any]) -> bytes:
    line = {
        "time": _iso(created),
        "level": level,
        "logger": logger,
        "message": message,
        **fields,
    }
    try:
        return orjson.dumps(line, default=repr)
    except TypeError:
        # It has a number beyond 64 bits, or text that UTF-8 cannot write.
        return json.dumps(line, default=repr, check_circular=False).encode()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that the caller gave in `extra={"fields": …}`."""
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


@lru_cache(maxsize=1)
def _second(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat().removesuffix("+00:00")


def _iso(now: float) -> str:
    """ISO 8601 in UTC; all but the milliseconds is made once a second."""
    return f"{_second(int(now))}.{int(now % 1 * 1e3):03d}+00:00"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level, logger, message, fields and traceback."""
        fields = _fields(record)
        if record.exc_info:
            fields = {**fields, "traceback": self.formatException(record.exc_info)}
        level = record.levelname.lower()
        return _line(record.created, level, record.name, record.getMessage(), fields).decode()


class TextFormatter(logging.Formatter):
    """One line for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The standard formatter's line, with the fields as `name=value` before any traceback."""
        line, newline, traceback = super().format(record).partition("\n")
        pairs = "".join(f" {name}={_word(value)}" for name, value in _fields(record).items())
        return line + pairs + newline + traceback


def _word(value: object) -> str:
    """A field's value. It may come from a client, and must start no line and no field of its own."""
    text = str(value).encode("unicode_escape").decode("ascii")
    return '"' + text.replace('"', '\\"') + '"' if {" ", '"'} & set(text) else text


class BackgroundHandler(logging.Handler):
    """Formats at once and leaves the writing to a thread, with a bounded number of lines between.

    Whoever reads our log may stop reading: then lines are dropped and counted in `dropped`, and
    requests go on.
    """

    def __init__(self, descriptor: int, capacity: int = CAPACITY) -> None:
        self.dropped = 0
        self._descriptor = descriptor
        self._capacity = capacity
        self._lines: deque[bytes] = deque()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="convoke-log", daemon=True)
        self._thread.start()
        # Only now: `logging` closes at the end what it knows, and no thread may be to be had.
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record's line, or count it as dropped."""
        self.put(self.format(record).encode())

    def put(self, line: bytes) -> None:
        """Queue a line, or count it as dropped."""
        if len(self._lines) >= self._capacity:
            self.dropped += 1
            return
        self._lines.append(line)
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Write what waits, for a second at most."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout=1.0)
        super().close()

    def _write(self) -> None:
        torn = False  # a line was begun, and its end could not be written
        while not self._closing.is_set() or self._lines:
            self._wake.wait()
            self._closing.wait(GATHER_S)
            self._wake.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            begun = [b""] if torn else []
            data = b"\n".join([*begun, *lines, b""])
            written = self._written(data)
            if written:
                torn = data[written - 1 : written] != b"\n"
            if written < len(data):
                ends = list(accumulate(len(line) + 1 for line in [*begun, *lines]))
                self.dropped += sum(end - 1 > written for end in ends[len(begun) :])

    def _written(self, data: bytes) -> int:
        """Write bytes; returns how many could be."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                # Whoever shares the descriptor may have made it so; this thread can wait.
                poll = select.poll()
                poll.register(self._descriptor, select.POLLOUT)
                poll.poll()
            except OSError:
                break  # there is nowhere left to say so
        return len(data) - len(left)


def configure(level: str, form: str, descriptor: int = 2) -> BackgroundHandler:
    """Send every log line of the process through one handler to a descriptor, by default stderr."""
    # Our lines name neither thread nor source; finding them out costs as much as the rest.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    global _straight
    handler = BackgroundHandler(descriptor)
    _straight = handler if form == "json" else None
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # uvicorn's account of its own start and end repeats ours.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, logging.root.level))
    return handler
