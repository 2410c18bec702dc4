"""PyTorch's CPU kernels on the arrays of a case, no copy made.

A forward runs without recording gradients. The backward of a convolution is the operator that autograd
itself would call; that of a pool runs on a graph recorded beforehand, so a max-pool has its indices
already. Neither is charged for what training would not pay at that point.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.kernels.cases import Case, Tensors


def call(torch: ModuleType, case: Case, action: str, tensors: Tensors) -> Callable[[], Any]:
    """A call without arguments that computes the action."""
    given = {name: _tensor(torch, case, name, array) for name, array in tensors.items()}
    if action == "forward":
        torch.set_grad_enabled(False)
        return _forward(torch, case, given)
    if case.is_convolution:
        return _convolution_backward(torch, case, given)
    x = given["x"].requires_grad_()
    with torch.enable_grad():
        y = _forward(torch, case, {"x": x})()
    return lambda: torch.autograd.grad(y, x, given["dy"], retain_graph=True)


def outputs(case: Case, action: str, result: Any) -> Tensors:
    """What a call gave, as arrays in the layout of the case."""
    names = ("y",) if action == "forward" else ("dx", "dweight", "dbias")
    values = (result,) if action == "forward" else tuple(result)
    return {
        name: case.arranged(name, value.numpy())
        for name, value in zip(names, values, strict=False)
        if value is not None
    }


def _tensor(torch: ModuleType, case: Case, name: str, array: NDArray[Any]) -> Any:
    """Channels first in name; the memory stays as it lies, but for weights of channels last."""
    tensor = torch.from_numpy(case.canonical(name, array))
    if case.channels_last and name == "weight":
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor


def _forward(torch: ModuleType, case: Case, given: dict[str, Any]) -> Callable[[], Any]:
    dims = len(case.size)
    functions, x = torch.nn.functional, given["x"]
    weight, bias = given.get("weight"), given.get("bias")
    stride, padding, groups = case.stride, case.padding, case.groups
    if case.operation == "conv":
        conv = getattr(functions, f"conv{dims}d")
        return lambda: conv(x, weight, bias, stride, padding, 1, groups)
    if case.operation == "conv_transpose":
        transpose = getattr(functions, f"conv_transpose{dims}d")
        return lambda: transpose(x, weight, bias, stride, padding, 0, groups)
    if case.operation == "adaptive_avg_pool":
        adaptive = getattr(functions, f"adaptive_avg_pool{dims}d")
        return lambda: adaptive(x, 1)
    pool = getattr(functions, f"{case.operation}{dims}d")
    return lambda: pool(x, case.kernel, stride, padding)


def _convolution_backward(
    torch: ModuleType, case: Case, given: dict[str, Any]
) -> Callable[[], Any]:
    dims = len(case.size)
    operator = torch.ops.aten.convolution_backward.default
    x, weight, dy = given["x"], given["weight"], given["dy"]
    sizes = [case.outputs] if case.bias else None
    stride, padding = [case.stride] * dims, [case.padding] * dims
    ones, zeros = [1] * dims, [0] * dims
    transposed = case.operation == "conv_transpose"
    mask = [True, True, case.bias]
    return lambda: operator(
        dy, x, weight, sizes, stride, padding, ones, transposed, zeros, case.groups, mask
    )


def describe(torch: ModuleType) -> str:
    """Version, and whether oneDNN is in use."""
    onednn = torch.backends.mkldnn.is_available()
    return f"{torch.__version__} ({'with' if onednn else 'without'} oneDNN)"


def agree(ours: Tensors, theirs: Tensors) -> float:
    """The largest difference of any output, relative to the largest value of that output.

    NaN where any of them is: Python's own `max` would lose it.
    """
    differences = [
        np.abs(ours[name] - array).max() / (np.abs(array).max() or 1)
        for name, array in theirs.items()
    ]
    return float(np.max(differences))
