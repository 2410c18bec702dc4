"""Limits that fit the memory, and come to less than all of it."""

from __future__ import annotations

import pytest

from app import shares
from app.admission import RESERVED
from app.setting import GiB, KiB, MiB
from app.settings import Settings
from app.shares import LEAST, LEAST_TO_SHARE, SERVER_BYTES, WORKER_BYTES, share
from app.workers.memory import KEPT_ARENA_BYTES
from app.workers.process import ARENAS


def has(monkeypatch: pytest.MonkeyPatch, memory: int, cpus: int = 2) -> None:
    """Let this machine have so much."""
    monkeypatch.setattr(shares, "available_memory", lambda: memory)
    monkeypatch.setattr(shares, "available_cpus", lambda: cpus)
    monkeypatch.setattr(shares, "to_share", shares.to_share.__wrapped__)  # nothing is kept of it


@pytest.mark.parametrize("cpus", [1, 2, 8])
def test_a_share_is_of_what_idle_processes_leave(
    cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, 4 * GiB, cpus)
    left = 4 * GiB - SERVER_BYTES - (1 + cpus) * WORKER_BYTES
    assert share(2 * GiB, 4)() == left // 4
    assert share(100 * MiB, 4)() == 100 * MiB


def test_however_many_there_are_something_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, 1 * GiB, 64)
    assert share(2 * GiB, 4)() == GiB // LEAST_TO_SHARE // 4
    assert share(2 * GiB, 1000)() == 2 * GiB // LEAST


def test_memory_is_shared_out_in_whole_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, GiB + 12345)
    assert share(2 * GiB, 4)() % (256 * KiB) == 0


@pytest.mark.parametrize("memory", [GiB // 2, 700 * MiB, GiB, 2 * GiB, 4 * GiB, 8 * GiB, 16 * GiB])
def test_all_that_two_workers_may_take_is_less_than_the_memory(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, memory)
    s = Settings()
    arenas = [s.max_tensor_bytes] * 2
    arenas += [min(s.max_tensor_bytes, KEPT_ARENA_BYTES)] * (ARENAS - len(arenas))
    worker = sum(arenas) + s.max_workspace_bytes
    readers = 2 * 16 * s.max_json_bytes
    idle = SERVER_BYTES + 3 * WORKER_BYTES
    assert idle + s.max_held_bytes + 2 * worker + readers < memory


def test_where_there_is_room_limits_are_those_that_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has(monkeypatch, 19 * GiB)
    s = Settings()
    found = (s.max_body_bytes, s.max_held_bytes, s.max_queue_bytes, s.max_workspace_bytes)
    assert found == (256 * MiB, 2 * GiB, 2 * GiB, GiB)
    assert (s.max_tensor_bytes, s.max_output_bytes) == (768 * MiB, 512 * MiB)
    assert (s.max_json_bytes, s.max_json_waiting_bytes) == (16 * MiB, 64 * MiB)
    assert (s.max_json_numbers, s.max_batch_bytes) == (1 << 22, 64 * MiB)


@pytest.mark.parametrize("memory", [GiB // 2, 4 * GiB, 64 * GiB])
def test_what_is_let_in_has_room(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, memory)
    s = Settings()
    assert 2 * s.max_body_bytes <= s.max_tensor_bytes
    assert s.max_body_bytes <= RESERVED * s.max_queue_bytes
    assert s.max_output_bytes <= s.max_tensor_bytes <= s.max_held_bytes
    assert s.max_batch_bytes <= s.max_tensor_bytes
