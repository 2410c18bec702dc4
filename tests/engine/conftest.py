"""How many examples Hypothesis tries here: the same ones every time, unless asked to explore.

pytest tests/engine --hypothesis-profile=explore
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

from engine import resolve, threads
from engine.kernels import direct, dispatch, filtering, tile_costs, winograd

settings.register_profile(
    "engine", derandomize=True, deadline=None, database=None, max_examples=150
)
settings.register_profile("explore", deadline=None, database=None, max_examples=3000)

if settings.get_current_profile_name() in ("default", "ci"):
    settings.load_profile("engine")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each part of the scratch that is asked for from here on."""
    found: list[int] = []
    real = direct.part

    def part(number: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:  # type: ignore[type-arg]
        found.append(int(np.prod(shape)) * dtype.itemsize)
        return real(number, shape, dtype)

    monkeypatch.setattr(direct, "part", part)
    return found


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share all work, however little it is."""
    monkeypatch.setattr(threads, "SMALL_FLOPS", 0)
    monkeypatch.setattr(winograd, "BLOCK_FLOPS", 0)
    monkeypatch.setattr(filtering, "SHARED_WEIGHTS", 0)


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles do all that they can under `auto`, also layers so small that they cost more than they save."""
    _forget()
    with monkeypatch.context() as patched:
        patched.setattr(tile_costs, "pay", lambda _: True)
        yield
    _forget()


def _forget() -> None:
    """Have every layer planned anew."""
    for kept in (*vars(dispatch).values(), resolve._prepared):
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()
