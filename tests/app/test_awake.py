"""Processors are kept awake while something is under way, and shortly after."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from app import awake
from app.awake import Awake
from engine.wakefulness import LINGER_S, Wakefulness
from tests.app.dispatching import scenario


@pytest.fixture
def wakefulness(tmp_path: Path) -> Wakefulness:
    device = tmp_path / "device"
    device.touch()
    return Wakefulness(device)


async def _until_let_go(wakefulness: Wakefulness) -> float:
    """The time at which it is let go of."""
    while wakefulness.held:
        await asyncio.sleep(1e-3)
    return _now()


def _now() -> float:
    return asyncio.get_running_loop().time()


@scenario
async def test_it_lingers_and_is_held_anew(wakefulness: Wakefulness) -> None:
    kept = Awake(wakefulness)
    for _ in range(2):
        kept.busy()
        assert wakefulness.held
        began = _now()
        kept.idle()
        assert wakefulness.held
        assert await _until_let_go(wakefulness) - began >= 0.9 * LINGER_S


@scenario
async def test_as_long_as_something_is_under_way_it_is_held(wakefulness: Wakefulness) -> None:
    kept = Awake(wakefulness)
    kept.busy()
    kept.idle()
    kept.busy()
    await asyncio.sleep(3 * LINGER_S)
    assert wakefulness.held
    kept.idle()
    await _until_let_go(wakefulness)


@scenario
async def test_it_lingers_from_the_last_that_was_done(
    wakefulness: Wakefulness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awake, "LINGER_S", 0.1)
    kept = Awake(wakefulness)
    kept.busy()
    kept.idle()
    await asyncio.sleep(0.06)
    kept.busy()
    began = _now()
    kept.idle()
    assert await _until_let_go(wakefulness) - began >= 0.09


@scenario
async def test_it_is_let_go_of_at_the_end(wakefulness: Wakefulness) -> None:
    kept = Awake(wakefulness)
    kept.busy()
    kept.idle()
    kept.close()
    assert not wakefulness.held
    await asyncio.sleep(2 * LINGER_S)
    kept.close()


@scenario
async def test_where_nothing_is_granted_nothing_is_waited_for(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    kept = Awake(Wakefulness(tmp_path / "absent"))
    with mock.patch.object(loop, "call_later") as timer:
        kept.busy()
        kept.idle()
    kept.close()
    timer.assert_not_called()
