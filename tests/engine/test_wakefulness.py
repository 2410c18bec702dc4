"""The request that keeps idle processors awake: made once, taken back, and done without where refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.wakefulness import DEVICE, Wakefulness, worth_it


def _open_on(path: Path) -> int:
    """How many of this process's descriptors are open on a file."""
    here = Path("/proc/self/fd")
    links = (each.readlink() for each in here.iterdir() if each.is_symlink())
    return sum(link == path for link in links)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "device"
    path.touch()
    return path


def test_a_latency_of_nothing_is_asked_for_as_long_as_it_is_held_over_one_file(
    device: Path,
) -> None:
    wakefulness = Wakefulness(device)
    for _ in range(2):
        for _ in range(2):
            assert not wakefulness.held
            wakefulness.hold()
            wakefulness.hold()
            assert wakefulness.held
            assert device.read_bytes() == bytes(4)
            wakefulness.let_go()
            wakefulness.let_go()
            assert device.read_bytes() == b"\xff\xff\xff\xff"
            assert _open_on(device) == 1
        wakefulness.hold()
        wakefulness.close()
        wakefulness.close()
        assert _open_on(device) == 0


def test_who_was_denied_it_does_not_ask_again(
    device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.unlink()
    wakefulness = Wakefulness(device)
    wakefulness.hold()
    device.touch()
    wakefulness.hold()
    assert not wakefulness.held
    wakefulness = Wakefulness(device)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", _too_many_files)
        wakefulness.hold()
    assert not wakefulness.held
    wakefulness.hold()
    assert wakefulness.held


def _too_many_files(*_: object) -> int:
    raise OSError(errno.EMFILE, "too many open files")


@pytest.mark.parametrize("device", [Path("/dev/full"), Path("/absent"), Path("/proc/self/status")])
def test_what_is_not_granted_is_done_without(device: Path) -> None:
    wakefulness = Wakefulness(device)
    wakefulness.hold()
    assert not wakefulness.held
    assert _open_on(device) == 0
    wakefulness.let_go()
    wakefulness.close()


@pytest.mark.skipif(not os.access(DEVICE, os.W_OK), reason="the system does not grant it")
def test_the_system_takes_the_request() -> None:
    wakefulness, before = (
        Wakefulness(),
        _open_on(DEVICE),
    )  # the engine's own threads may have it open
    wakefulness.hold()
    assert wakefulness.held
    assert _open_on(DEVICE) == before + 1
    assert DEVICE.read_bytes() == bytes(4)
    wakefulness.let_go()
    assert not wakefulness.held
    wakefulness.close()
    assert _open_on(DEVICE) == before


def test_it_is_worth_it_for_half_of_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [worth_it(busy) for busy in (1, 3, 4, 8, 9)] == [False, False, True, True, True]
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert worth_it(1)
