"""Log lines: their form, and what happens where nobody reads them."""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from app import logs
from app.logs import BackgroundHandler, JsonFormatter, TextFormatter


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A descriptor to read from and one to write to."""
    before = set(threading.enumerate())
    read, write = os.pipe()
    yield read, write
    os.close(read)
    # Who still writes has no reader now, and would write into the next test's pipe of the same number.
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=60.0)
        assert not thread.is_alive()
    os.close(write)


def record(message: str = "hello", **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("convoke.test", logging.INFO, "file", 1, message, (), None)
    made.__dict__["fields"] = fields
    return made


def test_a_line_is_a_json_object() -> None:
    line = json.loads(JsonFormatter().format(record(status=200, odd=object())))
    assert line["message"] == "hello"
    assert line["level"] == "info"
    assert line["status"] == 200
    assert line["time"].endswith("+00:00")


def test_a_traceback_stays_within_its_line() -> None:
    made = record()
    try:
        raise ValueError("reason")
    except ValueError:
        made.exc_info = sys.exc_info()
    text = JsonFormatter().format(made)
    assert "\n" not in text
    assert "ValueError: reason" in json.loads(text)["traceback"]


def test_a_client_cannot_write_a_line_of_its_own() -> None:
    text = TextFormatter().format(record(path="/x\n2026 INFO all is well"))
    assert "\n" not in text
    assert 'path="/x\\n2026' in text
    assert (
        TextFormatter()
        .format(record(request_id="a b=c", status=200))
        .endswith(' request_id="a b=c" status=200')
    )


def test_no_value_starts_a_field_of_its_own() -> None:
    line = TextFormatter().format(record(request_id='a" status=500 x="b', path="/\\"))
    assert line.endswith(r""" request_id="a\" status=500 x=\"b" path=/\\""")


def test_lines_arrive_in_order(pipe: tuple[int, int]) -> None:
    handler = BackgroundHandler(pipe[1])
    for number in range(100):
        handler.emit(record(f"line {number}"))
    handler.close()
    lines = os.read(pipe[0], 1 << 16).decode().splitlines()
    assert lines == [f"line {number}" for number in range(100)]
    assert handler.dropped == 0


def test_a_reader_that_does_not_read_stops_nobody(pipe: tuple[int, int]) -> None:
    handler = BackgroundHandler(pipe[1], capacity=50)
    while handler.dropped < 10:
        handler.emit(record("x" * 10_000))
    os.set_blocking(pipe[0], False)
    while True:  # let the writing thread go, so that the test ends at once
        try:
            os.read(pipe[0], 1 << 20)
        except BlockingIOError:
            break
    handler.close()


def test_a_pipe_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    messages = [letter * (1 << 20) for letter in "abc"]
    handler = BackgroundHandler(pipe[1])
    for message in messages:
        handler.emit(record(message))
    room, come = select.poll(), select.poll()
    room.register(pipe[1], select.POLLOUT)
    come.register(pipe[0], select.POLLIN)
    while room.poll(0) and not handler.dropped:
        time.sleep(0.001)
    read = b""
    while read.count(b"\n") < len(messages) and not handler.dropped:
        if come.poll(1):
            read += os.read(pipe[0], 1 << 20)
    handler.close()
    assert handler.dropped == 0
    assert read.decode().splitlines() == messages


def test_after_a_line_that_could_not_be_ended_the_next_begins_anew(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    room = [5, 0, 0]  # of a disk that is full in between

    def scarce(descriptor: int, data: bytes) -> int:
        if descriptor != pipe[1] or not room:
            return write(descriptor, data)
        if not (some := room.pop(0)):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:some])

    monkeypatch.setattr(os, "write", scarce)
    handler = BackgroundHandler(pipe[1])
    for lost, message in enumerate(["first\nline", "second"], 1):
        handler.emit(record(message))
        while handler.dropped < lost:
            time.sleep(0.001)
    handler.emit(record("third"))
    handler.emit(record("fourth"))
    handler.close()
    assert os.read(pipe[0], 1 << 16) == b"first\nthird\nfourth\n"
    assert handler.dropped == 2


def test_lines_for_nobody_are_counted() -> None:
    read, write = os.pipe()
    os.close(read)
    handler = BackgroundHandler(write)
    handler.emit(record())
    handler.close()
    os.close(write)
    assert handler.dropped == 1


def test_what_json_cannot_hold_is_still_a_line() -> None:
    for odd in (1 << 70, "\ud800"):
        assert json.loads(JsonFormatter().format(record(odd=odd)))["odd"] == odd


@pytest.mark.parametrize("form", ["json", "text"])
def test_requests_are_logged_in_either_form(form: str, pipe: tuple[int, int]) -> None:
    level, handlers = logging.root.level, logging.root.handlers[:]
    handler = logs.configure("info", form, pipe[1])
    try:
        logs.request({"status": 200, "path": "/x"})
        handler.close()
    finally:
        logs.configure("info", "text", pipe[1]).close()
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
    line = os.read(pipe[0], 1 << 16).decode()
    assert line.endswith("\n")
    if form == "json":
        found = json.loads(line)
        assert found.pop("time").endswith("+00:00")
        expected = {"level": "info", "logger": "convoke.requests", "message": "request"}
        assert found == expected | {"status": 200, "path": "/x"}
    else:
        assert "request status=200 path=/x" in line
