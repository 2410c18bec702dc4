"""The benchmark of choices: what it compares, and that it runs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import choices
from engine.threads import get_threads, set_threads


def test_a_loss_is_what_was_chosen_over_the_better_way() -> None:
    random = np.random.default_rng(0)
    layer = next(c for c in iter(lambda: choices.drawn(random, "auto"), None) if c.flops < 1e5)
    slow = choices.Timed(layer, 1, tiles=1.0, plain=3.0)
    assert (slow.chosen, slow.loss) == ("direct", 3.0)
    assert choices.Timed(layer, 1, tiles=3.0, plain=1.0).loss == 1


def test_it_tells_of_every_number_of_samples(capsys: pytest.CaptureFixture[str]) -> None:
    before = get_threads()
    try:
        assert choices.main(["--seconds", "0.05", "--wanted", "fastest"]) == 0
    finally:
        set_threads(before)
    head, *lines = capsys.readouterr().out.split("\n\n")[0].strip().splitlines()
    assert head.startswith("samples")
    assert head.endswith("plain / better")
    assert [int(line.split()[0]) for line in lines] == list(choices.SAMPLES)
