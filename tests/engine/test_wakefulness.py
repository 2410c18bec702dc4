"""The request that keeps idle processors awake: made once, taken back, and done without where refused."""

from __future__ import annotations

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


def test_a_latency_of_nothing_is_asked_for_once_and_as_long_as_it_is_held(device: Path) -> None:
    wakefulness = Wakefulness(device)
    for _ in range(2):
        assert not wakefulness.held
        wakefulness.hold()
        wakefulness.hold()
        assert wakefulness.held
        assert device.read_bytes() == bytes(4)
        assert _open_on(device) == 1
        wakefulness.let_go()
        wakefulness.let_go()
        assert _open_on(device) == 0


@pytest.mark.parametrize("device", [Path("/dev/full"), Path("/absent"), Path("/proc/self/status")])
def test_what_is_not_granted_is_done_without(device: Path) -> None:
    wakefulness = Wakefulness(device)
    wakefulness.hold()
    assert not wakefulness.held
    assert _open_on(device) == 0
    wakefulness.let_go()


@pytest.mark.skipif(not os.access(DEVICE, os.W_OK), reason="the system does not grant it")
def test_the_system_takes_the_request() -> None:
    wakefulness = Wakefulness()
    wakefulness.hold()
    assert wakefulness.held
    assert _open_on(DEVICE) == 1
    wakefulness.let_go()
    assert _open_on(DEVICE) == 0


def test_it_is_worth_it_for_half_of_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [worth_it(busy) for busy in (1, 3, 4, 8, 9)] == [False, False, True, True, True]
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert worth_it(1)
