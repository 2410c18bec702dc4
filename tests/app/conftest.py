"""What the tests of the service share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app import gates


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> gates.Gate:
    """A gate for the processes that are started from here on."""
    path = tmp_path / "gate"
    monkeypatch.setenv(gates.VARIABLE, str(path))
    return gates.Gate(path)
