"""Window arithmetic and layouts of the reference, one small function per rule of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

Index = tuple[int, ...]
Pairs = list[tuple[int, int]]


def per_axis(value: Any, rank: int) -> list[int]:
    """One integer stands for all axes."""
    return [value] * rank if isinstance(value, int) else list(value)


def extent(kernel: int, dilation: int) -> int:
    """The cells from the first tap to the last, both included."""
    return dilation * (kernel - 1) + 1


def conv_padding(
    padding: Any, size: Index, kernel: Index, stride: Sequence[int], dilation: Sequence[int]
) -> Pairs:
    """The (low, high) pair of each axis for conv and the pools."""
    pairs = []
    for axis, (n, k, s, d) in enumerate(zip(size, kernel, stride, dilation, strict=True)):
        reach = extent(k, d)
        if padding == "valid":
            pair = (0, 0)
        elif padding == "full":
            pair = (reach - 1, reach - 1)
        elif padding == "causal":
            pair = (reach - 1, 0)
        elif padding in ("same", "same_lower"):
            total = max((-(-n // s) - 1) * s + reach - n, 0)
            pair = halves(total, padding)
        elif isinstance(padding, int):
            pair = (padding, padding)
        else:
            entry = padding[axis]
            pair = (entry, entry) if isinstance(entry, int) else (entry[0], entry[1])
        pairs.append(pair)
    return pairs


def halves(total: int, name: str) -> tuple[int, int]:
    """Split `total`; the odd cell is at the end for "same", at the beginning for "same_lower"."""
    small, large = total // 2, total - total // 2
    return (small, large) if name == "same" else (large, small)


def window_count(n: int, pair: tuple[int, int], reach: int, stride: int, ceil_mode: bool) -> int:
    """The number of windows along one axis.

    With `ceil_mode` a window must start in the input or its low padding, else it is left out. As in
    PyTorch, whose padding is too narrow for more than one such window.
    """
    low, high = pair
    room = n + low + high - reach
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    while count > 1 and (count - 1) * stride >= n + low:
        count -= 1
    return count


def source(t: int, n: int, low: int, mode: str) -> int | None:
    """The input cell that padded cell `t` shows, None for a zero."""
    i = t - low
    if 0 <= i < n:
        return i
    if mode == "zeros":
        return None
    if mode == "replicate":
        return 0 if i < 0 else n - 1
    if mode == "circular":
        return i % n
    return -i if i < 0 else 2 * (n - 1) - i


def positions(shape: Sequence[int]) -> Iterator[Index]:
    """Every index into `shape`, in row-major order."""
    return product(*map(range, shape))


def flat(index: Index, shape: Index) -> int:
    """The row-major position of `index` in `shape`."""
    place = 0
    for i, n in zip(index, shape, strict=True):
        place = place * n + i
    return place


def spatial_letters(rank: int) -> str:
    return "DHW"[3 - rank :]


def channels_last(config: dict[str, Any]) -> bool:
    return str(config.get("layout")).endswith("C")


def to_first(a: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """Bring a tensor in the config's layout to N C then space."""
    return np.moveaxis(a, -1, 1) if channels_last(config) else a


def from_first(a: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    return np.moveaxis(a, 1, -1) if channels_last(config) else a


def weight_axes(config: dict[str, Any], rank: int, leading: str) -> tuple[str, str]:
    """The config's weight layout, and the canonical one that begins with `leading`."""
    space = spatial_letters(rank)
    default = space + "IO" if channels_last(config) else leading + space
    return config.get("weight_layout") or default, leading + space


def rearrange(a: np.ndarray, given: str, wanted: str) -> np.ndarray:
    return a.transpose([given.index(letter) for letter in wanted])
