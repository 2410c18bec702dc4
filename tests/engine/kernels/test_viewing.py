"""Arrays in another shape without a copy."""

from __future__ import annotations

import numpy as np

from engine.kernels.viewing import viewed


def test_what_lies_so_is_a_view_and_what_does_not_is_none() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    found = viewed(a, (2, -1))
    assert found is not None
    assert found.shape == (2, 12)
    assert np.shares_memory(found, a)
    assert viewed(a[..., :2], (2, -1)) is None
