"""How much memory this process may use: the machine's, and the limit of its control group."""

from __future__ import annotations

import os
from pathlib import Path

from app.workers.cgroups import ROOT, controlled, unified


def available_memory(root: Path = ROOT) -> int:
    """The bytes that this process and its children can have together, whatever others use of them now.

    Args:
        root: see `cgroups.ROOT`.
    """
    files = (
        *unified(root, "memory.max"),
        *controlled(root, "memory", "memory.limit_in_bytes"),
    )
    # Without a limit, version 2 says "max", and version 1 more than there is; 0 would let nobody run.
    limits = (int(word) for words in files for word in words if word.isdecimal())
    return min([_installed(), *filter(None, limits)])


def _installed() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
