"""Recorded requests by who computes them."""

from __future__ import annotations

from app.few import QUICK
from benchmarks.stress.traffic import Recorded, recorded


def for_a_worker() -> Recorded:
    """One that is too large to be computed in the event loop, whoever asks."""
    return next(given for given in recorded() if len(given.body) > QUICK.products.nbytes)


def for_the_loop() -> list[Recorded]:
    """Many that are computed there for few callers."""
    return [given for given in recorded() if len(given.body) < QUICK.passes.nbytes // 2]
