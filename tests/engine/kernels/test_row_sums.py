"""Sums over many rows: exact, alike alone and in company, and of rows of any length."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import Stopped
from engine.kernels import row_sums
from engine.kernels.row_sums import ROWS, SAMPLE_PART, WIDE, sums_over_rows
from engine.threads import computing

COUNTS = [1, 2, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 5, ROWS * ROWS, 50_177]


@pytest.mark.parametrize("numbers", [1, 2, 3, 64, 700])
@pytest.mark.parametrize("rows", COUNTS)
def test_sums_are_exact_and_alike_alone(rows: int, numbers: int) -> None:
    rows = min(rows, 3_000_000 // numbers)
    values = np.random.default_rng(rows).standard_normal((2, rows, numbers)).astype(np.float32)
    values += 1
    got = sums_over_rows(values)
    exact = values.sum(1, np.float64)
    # The sum of magnitudes is what rounding goes by.
    scale = np.abs(values).sum(1, np.float64)
    assert np.max(np.abs(got - exact) / scale) < 7e-7
    for n in range(2):
        assert sums_over_rows(values[n : n + 1]).tobytes() == got[n : n + 1].tobytes()
        assert sums_over_rows(values[n : n + 1].copy()).tobytes() == got[n : n + 1].tobytes()


@pytest.mark.parametrize("bounds", [(1, 1, 1), (2, 6, 8), (3, 4, 100)])
def test_all_rows_are_added_once_whatever_the_bounds(
    bounds: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound, value in zip(("ROWS", "WIDE", "SAMPLE_PART"), bounds, strict=True):
        monkeypatch.setattr(row_sums, bound, value + (bound == "ROWS"))
    for rows in (*range(1, 40), 500):
        for numbers in (1, 3, 9):
            values = np.arange(2.0 * rows * numbers).reshape(2, rows, numbers)
            np.testing.assert_array_equal(sums_over_rows(values), values.sum(1))


def test_values_need_not_be_one_run() -> None:
    whole = np.random.default_rng(0).standard_normal((2, 3 * ROWS, 5)).astype(np.float32)
    part = whole[..., 1:4]
    assert sums_over_rows(part).tobytes() == sums_over_rows(part.copy()).tobytes()


def test_no_samples_have_no_sums() -> None:
    assert sums_over_rows(np.ones((0, 3 * ROWS, WIDE))).shape == (0, WIDE)


def test_long_sums_stop_when_they_are_told_to() -> None:
    asked = iter((False, False, True))
    with pytest.raises(Stopped):
        computing(lambda: next(asked), sums_over_rows, np.ones((1, 8 * SAMPLE_PART, 1), np.float32))
    assert list(asked) == []
