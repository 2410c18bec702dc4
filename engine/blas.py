"""The BLAS inside NumPy: its threads, the kernels that it chose for this processor, and its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from engine.panels import Panels, panels_of

IN_PLACE = frozenset({"SkylakeX", "Cooperlake", "SapphireRapids"})
"""Kernels of OpenBLAS for float32 that multiply small operands where they lie, as those for 512-bit
vectors do. All others copy them to panels first, whatever their size."""

UNLIKE = frozenset({"Haswell", "Zen"})
"""Kernels for float32 that add up the last few columns of a product in another order than all before."""


@dataclass(frozen=True)
class Blas:
    """OpenBLAS as NumPy's wheels bring it.

    Attributes:
        set_threads: how many threads its products use from now on.
        get_threads: how many they use.
        kernels: the processor that its kernels are written for; empty where it does not tell.
        panels: the memory that they copy operands to; None where it cannot be had.
    """

    set_threads: Callable[[int], None]
    get_threads: Callable[[], int]
    kernels: str
    panels: Panels | None = None


@cache
def find() -> Blas | None:
    """The BLAS of this process; None where NumPy was built with another."""
    folder = Path(np.__file__).parent
    libraries = [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]
    for path in libraries:
        library = ctypes.CDLL(str(path))
        for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            try:
                setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}")
                getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}")
            except AttributeError:
                continue
            kernels = _told(library, f"{prefix}openblas_get_corename{suffix}")
            configuration = _told(library, f"{prefix}openblas_get_config{suffix}")
            return Blas(setter, getter, kernels, panels_of(library, configuration))
    return None


def _told(library: ctypes.CDLL, function: str) -> str:
    """What a function of a library answers; empty where it has none of that name."""
    try:
        found = getattr(library, function)
    except AttributeError:
        return ""
    found.restype = ctypes.c_char_p
    return (found() or b"").decode("ascii", "replace")


def multiplies_in_place() -> bool:
    """Whether products of few multiplications read their operands where they lie."""
    return _kernels() in IN_PLACE


def columns_are_unlike() -> bool:
    """Whether the bits of a product's last columns are known to depend on their being the last."""
    return _kernels() in UNLIKE


def _kernels() -> str:
    found = find()
    return "" if found is None else found.kernels
