"""What stands at places along an axis, against NumPy's padding."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import pytest

from engine.geometry import Axis, strided_out
from engine.kernels.borders import Run, runs

MODES: dict[str, Literal["reflect", "edge", "wrap"]] = {
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


def axis(size: int, low: int, high: int, kernel: int = 2) -> Axis:
    return Axis(size, kernel, 1, 1, low, high, strided_out(size, kernel, 1, low, high))


def laid(found: tuple[Run, ...], size: int, count: int) -> list[int]:
    """The input at each place; -1 where none is told, and a failure where two are."""
    there, inputs = [-1] * count, np.arange(size)
    for run in found:
        taken = inputs[run.inputs]
        assert run.repeated == (len(taken) < run.places.stop - run.places.start)
        for place, i in zip(
            range(count)[run.places],
            np.broadcast_to(taken, run.places.stop - run.places.start),
            strict=True,
        ):
            assert there[place] == -1
            there[place] = int(i)
    return there


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("size", "low", "high"), [(5, 4, 4), (7, 2, 0), (2, 1, 1), (9, 0, 6)])
def test_places_have_what_padding_puts_there(mode: str, size: int, low: int, high: int) -> None:
    padded = np.pad(np.arange(size), (low, high), MODES[mode])
    for start, step in product(range(-low, size + high), range(1, size + 2)):
        count = len(range(start, size + high, step))
        found = runs(axis(size, low, high), start, count, step, mode)
        assert laid(found, size, count) == padded[start + low :: step].tolist()


def test_zeros_have_nothing_in_the_padding() -> None:
    found = runs(axis(5, 3, 2), -3, 10, 1, "zeros")
    assert found == (Run(slice(3, 8), slice(0, 5, 1), repeated=False),)
    assert runs(axis(5, 3, 2), 5, 2, 1, "zeros") == runs(axis(5, 3, 2), -3, 3, 1, "zeros") == ()


@pytest.mark.parametrize("mode", MODES)
def test_as_much_padding_as_inputs_is_a_few_runs(mode: str) -> None:
    assert len(runs(axis(10_000, 9999, 9999), -9999, 29_998, 1, mode)) <= 5


@pytest.mark.parametrize("mode", MODES)
def test_places_beyond_all_windows_have_what_the_last_window_reads(mode: str) -> None:
    read = axis(4, 0, 3, kernel=3)
    found = laid(runs(read, 0, 12, 1, mode), 4, 12)
    assert found[:7] == np.pad(np.arange(4), (0, 3), MODES[mode]).tolist()
    assert set(found[7:]) == {found[6]}
