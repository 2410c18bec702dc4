"""What is said where the system does not grant what the service needs, and to whom."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from app.logs import BackgroundHandler
from app.options import load
from app.start import CannotStart, granted, listen, tell
from tests.redirecting import fill, piped, redirected
from tests.starving import granting


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(24, "Too many open files"), "cannot start: [Errno 24] Too many open files"),
        (MemoryError("of 3 bytes"), "cannot start: no memory can be had"),
    ],
)
def test_what_is_not_granted_is_told_in_a_line(error: Exception, line: str) -> None:
    with pytest.raises(CannotStart) as told, granted():
        raise error
    assert str(told.value) == line


def test_so_is_a_thread() -> None:
    with granting(0), pytest.raises(CannotStart, match="no thread can be had"), granted():
        BackgroundHandler(2)


def test_without_a_thread_there_is_no_log_to_close_at_the_end() -> None:
    before = logging._handlerList[:]  # type: ignore[attr-defined]
    with granting(0), pytest.raises(RuntimeError) as told:
        BackgroundHandler(2)
    assert (
        told.tb is not None
    )  # by which the half-made one is held, as it is at the end of a process
    after = logging._handlerList  # type: ignore[attr-defined]
    logging.shutdown([each for each in after if each not in before])


def test_our_own_mistakes_are_not() -> None:
    with pytest.raises(RuntimeError, match="ours"), granted():
        raise RuntimeError("ours")


@pytest.mark.parametrize("host", ["a" * 300, "x..y", ".", "\udcff"])
def test_what_is_no_host_is_told_in_a_line(host: str) -> None:
    with pytest.raises(CannotStart) as told:
        listen(load({"CONVOKE_HOST": host, "CONVOKE_PORT": "0"}))
    line = str(told.value)
    assert line.startswith("cannot listen on ")
    assert line.endswith(":0: it is no name of a host")
    assert line.isascii()
    assert len(line) < 200


def test_a_line_is_told_to_whoever_reads() -> None:
    with piped(1) as (read, _):
        tell("Here I am")
        assert os.read(read, 99) == b"Here I am\n"


def test_who_does_not_read_holds_nobody_up() -> None:
    with piped(1) as (read, write):
        fill(write)
        tell("Here I am")
        assert b"Here" not in os.read(read, 1 << 20)


def test_where_nobody_can_read_nothing_is_told() -> None:
    with Path("/dev/full").open("wb") as full, redirected(1, full.fileno()):
        tell("Here I am")
