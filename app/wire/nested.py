"""Nested lists of numbers → arrays, at the speed of C.

A list is taken apart level by level: the types and the lengths of a whole level are each one `set`,
and `chain` joins its lists into the next level. Only the search for what is wrong loops in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, compress, repeat
from math import inf
from operator import is_
from typing import Any, Final

import numpy as np

from app.errors import MalformedBody
from app.wire.elements import Array, read_only
from app.wire.limits import DecodeLimits
from app.wire.plain import kind
from engine.errors import InvalidValue, Loc, fail
from engine.words import Words, counted

INFINITIES: Final = ("Infinity", "-Infinity")
NOT_FINITE: Final = frozenset({"NaN", *INFINITIES})
"""The texts that stand for numbers which JSON cannot write; `float` reads each."""


NUMBER: Final = 'a number, or one of the texts "NaN", "Infinity" and "-Infinity"'
RAGGED: Final = "the lists are ragged"


def to_array(data: list[Any], dtype: np.dtype[Any], loc: Loc, limits: DecodeLimits) -> Array:
    """Turn nested lists into a read-only array in native byte order, shaped as they nest.

    Raises:
        MalformedBody: ragged lists, or a number that `dtype` cannot hold, each with the path of the
            first one.
        InvalidValue: lists that nest more deeply than a tensor has axes.
    """
    flat, shape = _flatten(data, loc, limits)
    dtype = dtype.newbyteorder("=")
    read = _integers if dtype.kind in "iu" else _floats
    return read_only(read(flat, dtype, _Place(flat, shape, loc)).reshape(shape))


def numbers_in(tensor: object) -> int:
    """How many numbers a tensor's lists have, be they right or wrong; in base64 they do not count."""
    level = tensor.get("data") if isinstance(tensor, dict) else tensor
    found = 0
    while isinstance(level, list):
        if list not in set(map(type, level)):
            return found + len(level)
        lists = [item for item in level if type(item) is list]
        found += len(level) - len(lists)
        level = list(chain.from_iterable(lists))
    return found


def _flatten(data: list[Any], loc: Loc, limits: DecodeLimits) -> tuple[list[Any], tuple[int, ...]]:
    """Take the lists apart: their innermost items in one list, and the length of each level."""
    level = data
    shape: tuple[int, ...] = (len(data),)
    while list in (types := set(map(type, level))):
        length = _common_length(_Place(level, shape, loc), types)
        if len(shape) == limits.max_rank:
            expected = f"at most {limits.max_rank} levels"
            raise fail(InvalidValue, loc, "the lists nest too deeply", expected)
        shape = (*shape, length)
        level = list(chain.from_iterable(level))
    return level, shape


def _common_length(here: _Place, types: set[type]) -> int:
    """The one length of the lists at a level where there are some."""
    if len(types) > 1:
        raise here.fault(lambda item: type(item) is not list, "a list, as beside it", RAGGED)
    first = len(here.items[0])
    if set(map(len, here.items)) != {first}:
        expected = f"{counted(first, 'item')}, as in the first"
        raise here.fault(lambda item: len(item) != first, expected, RAGGED)
    return first


def _integers(flat: list[Any], dtype: np.dtype[Any], here: _Place) -> Array:
    if set(map(type, flat)) - {int}:
        raise here.fault(lambda item: type(item) is not int, f"an integer, for {dtype.name}")
    try:
        return np.array(flat, dtype)
    except OverflowError:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        expected = f"{low} to {high}, for {dtype.name}"
        raise here.fault(lambda item: not low <= item <= high, expected) from None


def _floats(flat: list[Any], dtype: np.dtype[Any], here: _Place) -> Array:
    types = set(map(type, flat))
    if types - {int, float, str}:
        raise here.fault(lambda item: type(item) not in (int, float, str), NUMBER)
    if str in types:
        texts = set(compress(flat, map(is_, map(type, flat), repeat(str))))
        if texts - NOT_FINITE:
            raise here.fault(lambda item: type(item) is str and item not in NOT_FINITE, NUMBER)
    expected = f"a number within the range of {dtype.name}"
    try:
        with np.errstate(over="ignore"):
            array = np.array(flat, dtype)
    except OverflowError:
        raise here.fault(lambda item: _overflows(item, dtype), expected) from None
    infinite = np.count_nonzero(np.isinf(array))
    if infinite and infinite != sum(map(flat.count, INFINITIES)):
        raise here.fault(lambda item: _overflows(item, dtype), expected)
    return array


def _overflows(item: Any, dtype: np.dtype[Any]) -> bool:
    if isinstance(item, str):
        return False
    try:
        with np.errstate(over="ignore"):
            return bool(np.isinf(np.array(item, dtype)))
    except OverflowError:
        return True


@dataclass(frozen=True)
class _Place:
    """One level of the lists: its items in one row, the lengths that lead to it, and its path."""

    items: list[Any]
    shape: tuple[int, ...]
    loc: Loc

    def fault(
        self, wrong: Callable[[Any], bool], expected: str, msg: str = "this element cannot be read"
    ) -> MalformedBody:
        """The error of the first item that is wrong."""
        index = next(index for index, item in enumerate(self.items) if wrong(item))
        path = [int(step) for step in np.unravel_index(index, self.shape)]
        return MalformedBody.at((*self.loc, *path), msg, expected, _seen(self.items[index]))


_BEYOND: Final = (inf, -inf)
"""What the parser makes of numbers that it cannot hold, as 1e400; infinities that were meant are texts."""


def _seen(item: object) -> object:
    if isinstance(item, list):
        return counted(len(item), "item")
    if item in _BEYOND:
        return Words("a number beyond the range of float64")
    return item if type(item) in (int, float, str) else kind(item)
