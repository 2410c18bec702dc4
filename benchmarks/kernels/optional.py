"""Packages that only the benchmark knows, and only where they are installed."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


def find(name: str) -> ModuleType | None:
    """The module, or None where it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
