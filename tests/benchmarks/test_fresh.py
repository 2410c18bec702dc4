"""The benchmark of fresh processes: what it compares, and that it runs."""

from __future__ import annotations

import pytest

from benchmarks import fresh
from engine import blas
from engine.threads import get_threads, set_threads


def test_a_process_that_touches_nothing_has_no_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    if blas.find() is None:
        pytest.skip("NumPy was built with another BLAS")
    seen: list[object] = []

    def computed(*_: object) -> float:
        found = blas.find()
        assert found is not None
        seen.append(found.panels)
        return 1.0

    monkeypatch.setattr(fresh, "_timed", computed)
    usual = blas.find()
    assert usual is not None
    fresh.timed("tiny", "forward", 0.0, touched=True)
    fresh.timed("tiny", "forward", 0.0, touched=False)
    assert seen == [usual.panels, None]
    assert blas.find() is usual


def test_it_tells_of_every_case_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    before = get_threads()
    try:
        assert (
            fresh.main(["--case", "tiny", "--rounds", "1", "--seconds", "0", "--threads", "1"]) == 0
        )
    finally:
        set_threads(before)
    head, *lines = capsys.readouterr().out.strip().splitlines()
    assert head.split()[0] == "case"
    assert [line.split()[:2] for line in lines] == [["tiny", "forward"], ["tiny", "backward"]]
    for line in lines:
        untouched, touched, ratio = map(float, line.split()[2:])
        assert ratio == pytest.approx(untouched / touched, rel=0.02)
