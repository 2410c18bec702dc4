"""Tensors made from a seed by a formula, so that recorded cases need not store their inputs.

Everything is integer arithmetic: the same on every machine and under every NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def words(seed: int, count: int) -> np.ndarray:
    """`count` words of SplitMix64 (Steele, Lea and Flood, 2014), the stream of `seed`."""
    start = np.uint64(seed * 0x632BE59BD9B4E019 % 2**64)
    z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(31))


def numbers(
    seed: int, shape: Sequence[int], kind: str = "dense", dtype: str = "float64"
) -> np.ndarray:
    """Numbers of [-2, 2): multiples of 1/64 ("dense"), integers ("ties"), or |dense| + 1/8.

    All are exact in float16, float32 and float64.
    """
    draw = words(seed, int(np.prod(shape, dtype=np.int64)))
    if kind == "ties":
        values = (draw % np.uint64(4)).astype(np.float64) - 2
    else:
        values = (draw % np.uint64(256)).astype(np.float64) / 64 - 2
        if kind == "positive":
            values = np.abs(values) + 0.125
    return values.reshape(shape).astype(dtype)


def distinct_indices(seed: int, shape: Sequence[int], plane: int) -> np.ndarray:
    """Indices of `shape` (N, C, space) into planes of `plane` cells, no cell twice in a plane."""
    many, count = int(np.prod(shape[:2], dtype=np.int64)), int(np.prod(shape[2:], dtype=np.int64))
    order = np.argsort(words(seed, many * plane).reshape(many, plane), axis=1, kind="stable")
    return order[:, :count].astype(np.int64).reshape(shape)
