"""What tests of pools share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import threads


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads share all work, however little it is; there are as many afterwards as there were."""
    before = threads.get_threads()
    monkeypatch.setattr(threads, "SMALL_FLOPS", 0)
    yield
    threads.set_threads(before)
