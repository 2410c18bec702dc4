"""Between float16 and float32, in vectors: NumPy converts one number after the other.

A half's exponent is 112 less than that of the float32 with the same bits, so that a multiplication by 2^112
makes one of the other, numbers below 2^-14 included. Back, two multiplications take what is too large to
infinity. Adding a power of two 2^13 times as large as a half's last digit then rounds there, to even, and
leaves the digits in the lowest bits (Dukhan, "FP16", 2017). NaN has one pattern of bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import aligned, part
from engine.geometry import slices
from engine.threads import for_each

Array = NDArray[Any]

BLOCK = 1 << 15
"""Numbers converted at a time: they stay in the second-level cache."""

CONVERTING = 64
"""Work that takes as long as converting one number."""

SIGN, EXPONENT = 0x8000, 0x7C00
"""Of the bits of a half."""

BIAS = np.float32(2.0**112)
INFINITE = 0x7F800000
"""The exponent of a float32 that is infinite."""

LARGEST = np.float32(2.0**16)
"""From here on halves are infinite, or NaN."""

SMALLEST = 0x38800000
"""The bits of 2^-14 in float32: below it, halves have as many places as that."""

NAN = 0x7E00

WORDS = np.dtype(np.uint32)


def widened(halves: Array) -> Array:
    """Numbers in float16 as an array in float32, exactly."""
    given = np.ascontiguousarray(halves, np.float16)
    found = aligned(given.shape, np.dtype(np.float32))
    source, target = given.reshape(-1).view(np.uint16), found.reshape(-1)
    _by_blocks(_widen, source, target)
    return found


def narrow(source: Array, target: Array) -> None:
    """Write numbers in float32, whose NaN have the bits of `settle`, to float16: rounded to even."""
    _by_blocks(_narrow, source.reshape(-1), target.reshape(-1, copy=False).view(np.uint16))


def _by_blocks(convert: Callable[[Array, Array], None], source: Array, target: Array) -> None:
    def block(some: slice) -> None:
        convert(source[some], target[some])

    for_each(block, ((some,) for some in slices(source.size, BLOCK)), CONVERTING * source.size)


def _widen(halves: Array, target: Array) -> None:
    bits, signs = target.view(WORDS), part(0, target.shape, WORDS)
    np.copyto(bits, halves)
    np.bitwise_and(bits, SIGN, out=signs)
    np.left_shift(signs, 16, out=signs)
    np.bitwise_and(bits, SIGN - 1, out=bits)
    finite = np.maximum.reduce(bits) < EXPONENT
    np.left_shift(bits, 13, out=bits)
    np.multiply(target, BIAS, out=target)
    if not finite:
        np.bitwise_or(bits, INFINITE, out=bits, where=target >= LARGEST)
    np.bitwise_or(bits, signs, out=bits)


def _narrow(numbers: Array, target: Array) -> None:
    rounded, powers = (part(n, numbers.shape, WORDS) for n in (0, 1))
    bits, sums = numbers.view(WORDS), rounded.view(np.float32)
    np.abs(numbers, out=sums)
    np.multiply(sums, BIAS, out=sums)
    np.multiply(sums, 4 / BIAS, out=sums)
    # 15 binary places above each number's own.
    np.bitwise_and(bits, INFINITE, out=powers)
    np.maximum(powers, SMALLEST, out=powers)
    np.add(powers, 15 << 23, out=powers)
    np.add(sums, powers.view(np.float32), out=sums)
    np.right_shift(rounded, 13, out=powers)
    np.bitwise_and(powers, EXPONENT, out=powers)
    # A number rounded up to the next power carries into its exponent.
    np.bitwise_and(rounded, 0xFFF, out=rounded)
    np.add(rounded, powers, out=rounded)
    missing = np.isnan(numbers)
    if missing.any():
        rounded[missing] = NAN
    np.right_shift(bits, 16, out=powers)
    np.bitwise_and(powers, SIGN, out=powers)
    np.bitwise_or(rounded, powers, out=rounded)
    np.copyto(target, rounded, casting="unsafe")
