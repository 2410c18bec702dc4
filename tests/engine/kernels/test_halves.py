"""Conversions of float16 against NumPy's, over all halves and all around them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import engine
from engine.kernels import halves
from engine.kernels.halves import narrow, widened
from engine.threads import computing

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.fixture(params=[1000, halves.BLOCK], autouse=True)
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "BLOCK", request.param)


def narrowed(a: np.ndarray) -> np.ndarray:
    found = np.full(a.shape, 7, np.float16)
    computing(None, narrow, a, found)
    return found


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_every_half_is_widened_exactly() -> None:
    found: list[np.ndarray] = []
    computing(None, lambda: found.append(widened(EVERY.reshape(256, 256))))
    assert same(found[0], EVERY.astype(np.float32).reshape(256, 256))


def test_every_half_comes_back() -> None:
    numbers = EVERY[~np.isnan(EVERY)]
    assert same(narrowed(numbers.astype(np.float32)), numbers)


def _around() -> Iterator[np.ndarray]:
    """Numbers between neighbours: in the middle, and the next ones to it and to the neighbours."""
    numbers = EVERY[:0x7C01].astype(np.float64)
    numbers[-1] = 2.0**16  # where the next half would be, were it not infinite
    middles = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    for a in (numbers[:-1].astype(np.float32), middles):
        for b in (a, np.nextafter(a, np.float32(np.inf)), np.nextafter(a, np.float32(-np.inf))):
            yield b
            yield -b


def test_numbers_between_halves_are_rounded_to_even() -> None:
    for numbers in _around():
        with np.errstate(over="ignore", under="ignore"):
            want = numbers.astype(np.float16)
        assert same(narrowed(numbers), want)


def test_other_numbers() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, dtype=np.uint64)
    ends = [0, 1 << 31, 1, 0x7FFFFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000]
    numbers = np.append(bits, ends).astype(np.uint32).view(np.float32)
    numbers = numbers[~np.isnan(numbers)]
    with np.errstate(over="ignore", under="ignore"):
        want = numbers.astype(np.float16)
    assert same(narrowed(numbers), want)


def test_nan_has_its_one_pattern() -> None:
    numbers = np.array([1.0, np.nan, -2.0], np.float32)
    assert narrowed(numbers).view(np.uint16).tolist() == [0x3C00, 0x7E00, 0xC000]


def test_halves_anywhere_in_memory() -> None:
    """As they come in a message, or from Python."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((2, 3, 5, 6)).astype(np.float16)
    shifted = np.frombuffer(b"\0" + dense.tobytes(), np.uint8)[1:].view(np.float16)
    want = engine.forward("avg_pool", {"kernel": 2}, x=dense)["y"]
    assert want.dtype == np.float16
    turned = np.ascontiguousarray(dense.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    for x in (shifted.reshape(dense.shape), turned, np.asfortranarray(dense)):
        assert same(engine.forward("avg_pool", {"kernel": 2}, x=x)["y"], want)
