"""Numbers laid channels last with their padding, from maps of either order."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.winograd.lines import Lines


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", [0, 2])
def test_numbers_stand_within_zeros(padding: int, last: bool) -> None:
    numbers = np.random.default_rng(1).standard_normal((3, 4, 5))
    padded = np.full((4 + padding, 5, 3), np.nan)
    inner = padded[padding:].transpose(2, 0, 1)
    given = numbers.transpose(1, 2, 0).copy().transpose(2, 0, 1) if last else numbers
    Lines(padded, inner, np.full((3, 4, 5), np.nan), 0).load(given)
    np.testing.assert_array_equal(padded[padding:], numbers.transpose(1, 2, 0))
    np.testing.assert_array_equal(padded[:padding], 0)
