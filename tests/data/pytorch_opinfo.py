"""The sample inputs that PyTorch tests its own operators with, as cases of ours.

Only shapes and arguments are taken; the numbers are ours. Needs PyTorch and expecttest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.data.recorded import Case

OPERATIONS = {
    f"nn.functional.{name}{rank}d": ours
    for rank in (1, 2, 3)
    for name, ours in {
        "conv": "conv",
        "conv_transpose": "conv_transpose",
        "max_pool": "max_pool",
        "avg_pool": "avg_pool",
        "adaptive_avg_pool": "adaptive_avg_pool",
        "adaptive_max_pool": "adaptive_max_pool",
        "max_unpool": "max_unpool",
    }.items()
}

CONV = ("weight", "bias", "stride", "padding", "dilation", "groups")
TRANSPOSE = ("weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
MAX = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
AVG = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
ARGUMENTS = {
    "conv": CONV,
    "conv_transpose": TRANSPOSE,
    "max_pool": MAX,
    "avg_pool": AVG,
    "adaptive_avg_pool": ("output_size",),
    "adaptive_max_pool": ("output_size", "return_indices"),
    "max_unpool": ("indices", "kernel_size", "stride", "padding", "output_size"),
}


def plain(value: Any, rank: int) -> Any:
    """An argument as plain JSON; a tuple of one stands for all axes in PyTorch."""
    if isinstance(value, (tuple, list, torch.Size)):
        entries = [None if v is None else int(v) for v in value]
        return entries[0] if len(entries) == 1 and rank > 1 else entries
    return value


def translate(operation: str, sample: Any, rank: int, seed: int) -> Case:
    given = dict(zip(ARGUMENTS[operation], sample.args, strict=False)) | sample.kwargs
    batch = [] if sample.input.ndim == rank + 2 else [1]
    shapes = {"x": [*batch, *sample.input.shape]}
    for name in ("weight", "bias", "indices"):
        tensor = given.pop(name, None)
        if tensor is not None:
            shapes[name] = [*(batch if name == "indices" else []), *tensor.shape]
    config = {
        name.replace("kernel_size", "kernel"): plain(value, rank)
        for name, value in given.items()
        if value is not None and value not in ((), [])
    }
    if operation == "max_unpool":
        size = config["output_size"]
        config = {"output_size": size[-rank:]}
    if operation.startswith("adaptive") and "output_size" not in config:
        config["output_size"] = None
    return {
        "operation": operation,
        "config": config,
        "shapes": shapes,
        "seed": seed,
        "kind": "dense",
        "dtype": "float64",
    }


def cases() -> Iterator[Case]:
    """Every sample that has a counterpart here, less those whose channels are empty."""
    seed, described = 0, cast("list[Any]", op_db)
    for info in described:
        if info.name not in OPERATIONS or info.variant_test_name:
            continue
        for sample in info.sample_inputs("cpu", torch.float64, requires_grad=False):
            seed += 1
            yield translate(OPERATIONS[info.name], sample, int(info.name[-2]), seed)
