"""Windows and numbers for maxima, and answers against the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine
from engine import threads
from engine.geometry import Axis

AXES: list[tuple[Axis, ...]] = [
    (Axis(9, 3, 1, 1, 1, 1, 9),),
    (Axis(5, 2, 2, 1, 4, 0, 4),),  # the first two windows hold no input
    (Axis(8, 2, 2, 1, 0, 0, 4), Axis(6, 2, 2, 1, 0, 0, 3)),
    (Axis(7, 3, 2, 1, 1, 1, 4), Axis(9, 3, 2, 1, 1, 1, 5)),
    (Axis(9, 2, 3, 2, 0, 2, 3), Axis(10, 1, 4, 1, 0, 0, 3)),
    (Axis(5, 2, 1, 3, 3, 3, 8), Axis(6, 3, 2, 2, 0, 0, 1)),
    (Axis(4, 2, 2, 1, 0, 0, 2), Axis(5, 3, 1, 1, 1, 1, 5), Axis(6, 2, 2, 1, 1, 1, 4)),
]


def drawn(shape: tuple[int, ...], dtype: str, numbers: str) -> np.ndarray:
    """Random numbers: `distinct` ones, mostly `equal` ones with zeros of either sign, or `special` ones."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape).astype(dtype)
    if numbers == "distinct":
        return x
    x = np.round(x).clip(-1, 1) * np.where(rng.random(shape) < 0.5, -1, 1).astype(dtype)
    if numbers == "special":
        x[rng.random(shape) < 0.01] = np.nan
        x[rng.random(shape) < 0.3] = -np.inf
        x[0, 0] = -np.inf
        x[-1, -1, ..., ::3] = np.inf
    return x


def gradient(shape: tuple[int, ...], dtype: str, numbers: str) -> np.ndarray:
    """Whole numbers, which are added up exactly in any order; where `special`, others among them."""
    dy = np.random.default_rng(6).integers(-9, 9, shape).astype(dtype)
    if numbers == "special":
        dy[0, 1] = np.inf
        dy[1, 0] = np.nan
    return dy


def layer(
    config: dict[str, Any],
    shape: tuple[int, ...],
    outs: list[int],
    dtype: str,
    numbers: str,
    *,
    last: bool,
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """A config with its layout, x and dy, of a shape with channels first."""
    x, dy = drawn(shape, dtype, numbers), gradient((*shape[:2], *outs), dtype, numbers)
    if not last:
        return config, x, dy
    layout = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(outs)]
    return config | {"layout": layout}, np.moveaxis(x, 1, -1), np.moveaxis(dy, 1, -1)


def check_answers(
    operation: str,
    config: dict[str, Any],
    x: np.ndarray,
    dy: np.ndarray,
    want: dict[str, np.ndarray],
) -> None:
    """See that answers are those wanted, on one thread and two, however x lies, and alone as in company."""
    for number in (1, 2):
        threads.set_threads(number)
        # What lies otherwise in memory is no other layer.
        for given in (x, np.repeat(x, 2, axis=-1)[..., ::2], np.asfortranarray(x)):
            got = engine.forward(operation, config, x=given)
            got |= engine.backward(operation, config, x=given, dy=dy)
            for name, array in want.items():
                np.testing.assert_array_equal(got[name], array, err_msg=name)
        for i in range(len(x)):
            alone = engine.backward(operation, config, x=x[i : i + 1], dy=dy[i : i + 1])
            assert alone["dx"].tobytes() == got["dx"][i : i + 1].tobytes()
