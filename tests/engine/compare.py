"""How results are compared: shapes exactly, numbers against the size of the largest expected."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "float16": 2e-3}


def assert_close(
    got: Mapping[str, np.ndarray],
    want: Mapping[str, np.ndarray],
    dtype: str = "float64",
    about: object = "",
) -> None:
    """Every tensor of `want` is in `got`, of its shape, and equal to the dtype's tolerance."""
    assert set(got) == set(want), f"{about}: got {sorted(got)}, want {sorted(want)}"
    for name, expected in want.items():
        actual = got[name]
        assert actual.shape == expected.shape, f"{about}: {name} {actual.shape} {expected.shape}"
        if name == "indices":
            np.testing.assert_array_equal(actual, expected, f"{about}: {name}")
            continue
        finite = np.abs(expected[np.isfinite(expected)], dtype=np.float64)
        scale = max(1.0, float(finite.max(initial=0)))
        np.testing.assert_allclose(
            actual.astype(np.float64),
            expected.astype(np.float64),
            rtol=TOLERANCE[dtype],
            atol=TOLERANCE[dtype] * scale,
            err_msg=f"{about}: {name}",
        )


def assert_same_bytes(
    got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], about: object = ""
) -> None:
    """The same tensors to the last bit."""
    assert set(got) == set(want), f"{about}: got {sorted(got)}, want {sorted(want)}"
    for name, expected in want.items():
        actual = got[name]
        assert actual.dtype == expected.dtype, f"{about}: {name}"
        assert actual.shape == expected.shape, f"{about}: {name}"
        assert actual.tobytes() == expected.tobytes(), f"{about}: {name} differs in its bits"
