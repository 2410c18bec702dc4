"""Operation name to operation. The registry is the folder: every module there with an OPERATION."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from engine import operations
from engine.errors import UnknownOperation, fail
from engine.operation import Operation
from engine.words import did_you_mean, one_of

ALIASES = {"deconv": "conv_transpose"}


@cache
def table() -> dict[str, Operation]:
    """All operations by name."""
    modules = (
        import_module(f"{operations.__name__}.{m.name}")
        for m in pkgutil.iter_modules(operations.__path__)
    )
    found: list[Operation] = [module.OPERATION for module in modules]
    return {operation.name: operation for operation in found}


def find(name: str) -> Operation:
    """The operation of that name or alias; raises UnknownOperation."""
    operation = table().get(ALIASES.get(name, name)) if isinstance(name, str) else None
    if operation is None:
        msg = f"no such operation{did_you_mean(name, table())}"
        raise fail(UnknownOperation, ("operation",), msg, one_of(table()), name)
    return operation
