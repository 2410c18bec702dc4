"""Which rows are fetched in order first."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.pools import ahead


@pytest.mark.parametrize(
    ("row", "pays"),
    [((63, 1), False), ((64, 1), True), ((1023, 1), True), ((1024, 1), False), ((112, 64), False)],
)
def test_rows_of_some_lines_pay(row: tuple[int, int], pays: bool) -> None:
    assert ahead.pays(np.empty((2, 3, *row), np.float32)) == pays
