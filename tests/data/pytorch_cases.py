"""What PyTorch computes for a config of ours. Needs PyTorch; used by the scripts beside it only.

A case is a plain map: operation, config, shapes (name to shape, in the config's layout), seed, kind
(of numbers) and dtype. `inputs` makes its tensors, `answers` asks PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from tests.data.recorded import Arrays, Case, inputs

MODES = {
    "zeros": "constant",
    "reflect": "reflect",
    "replicate": "replicate",
    "circular": "circular",
}


def per_axis(value: Any, rank: int) -> list[Any]:
    return [value] * rank if isinstance(value, int) or value is None else list(value)


def pairs(config: dict[str, Any], rank: int) -> list[tuple[int, int]]:
    found = [(p, p) if isinstance(p, int) else p for p in per_axis(config.get("padding", 0), rank)]
    return [(low, high) for low, high in found]


def torch_pad(low_high: list[tuple[int, int]]) -> list[int]:
    return [amount for pair in reversed(low_high) for amount in pair]


def activate(spec: Any, y: torch.Tensor) -> torch.Tensor:
    given: dict[str, Any] = (
        {"name": spec} if isinstance(spec, str) else dict(spec or {"name": "identity"})
    )
    name = given.pop("name")
    if name == "gelu":
        return F.gelu(y, approximate="tanh" if given.get("approximate") else "none")
    if name == "hard_sigmoid":
        return torch.clamp(given.get("alpha", 0.2) * y + given.get("beta", 0.5), 0, 1)
    if name == "affine":
        return given.get("slope", 1) * y + given.get("intercept", 0)
    alpha = given.get("alpha")
    return {
        "identity": lambda: y * 1,
        "relu": lambda: F.relu(y),
        "leaky_relu": lambda: F.leaky_relu(y, 0.01 if alpha is None else alpha),
        "elu": lambda: F.elu(y, 1.0 if alpha is None else alpha),
        "selu": lambda: F.selu(y),
        "silu": lambda: F.silu(y),
        "sigmoid": lambda: torch.sigmoid(y),
        "tanh": lambda: torch.tanh(y),
        "softplus": lambda: F.softplus(y, threshold=40),
        "exponential": lambda: torch.exp(y),
    }[name]()


def flipped(config: dict[str, Any], weight: torch.Tensor) -> torch.Tensor:
    return weight.flip(tuple(range(2, weight.ndim))) if config.get("flip_kernel") else weight


def conv(config: dict[str, Any], t: dict[str, torch.Tensor]) -> torch.Tensor:
    rank = t["x"].ndim - 2
    function = getattr(F, f"conv{rank}d")
    x, padding = t["x"], config.get("padding", 0)
    mode = config.get("padding_mode", "zeros")
    if not isinstance(padding, str):
        low_high = pairs(config, rank)
        symmetric = all(low == high for low, high in low_high)
        if mode == "zeros" and symmetric:
            padding = [low for low, _ in low_high]
        else:
            x, padding = F.pad(x, torch_pad(low_high), "constant" if mode == "zeros" else mode), 0
    return function(
        x,
        flipped(config, t["weight"]),
        t.get("bias"),
        config.get("stride", 1),
        padding,
        config.get("dilation", 1),
        config.get("groups", 1),
    )


def conv_transpose(config: dict[str, Any], t: dict[str, torch.Tensor]) -> torch.Tensor:
    rank = t["x"].ndim - 2
    function = getattr(F, f"conv_transpose{rank}d")
    return function(
        t["x"],
        flipped(config, t["weight"]),
        t.get("bias"),
        config.get("stride", 1),
        config.get("padding", 0),
        config.get("output_padding", 0),
        config.get("groups", 1),
        config.get("dilation", 1),
    )


def pool(operation: str, config: dict[str, Any], x: torch.Tensor) -> Any:
    rank = x.ndim - 2
    function = getattr(F, f"{operation}{rank}d")
    common = [config.get("kernel"), config.get("stride")]
    if operation == "max_pool":
        low_high, padding = pairs(config, rank), [0] * rank
        if all(
            low == high and 2 * low <= k
            for (low, high), k in zip(low_high, per_axis(config["kernel"], rank), strict=True)
        ):
            padding = [low for low, _ in low_high]
        else:
            x = F.pad(x, torch_pad(low_high), value=-torch.inf)
        return function(
            x,
            *common,
            padding,
            config.get("dilation", 1),
            ceil_mode=config.get("ceil_mode", False),
            return_indices=config.get("return_indices", False),
        )
    if operation == "avg_pool":
        more = [] if rank == 1 else [config.get("divisor_override")]
        return function(
            x,
            *common,
            config.get("padding", 0),
            config.get("ceil_mode", False),
            config.get("count_include_pad", True),
            *more,
        )
    if operation == "lp_pool":
        return function(x, float(config.get("p", 2.0)), *common)
    size = config["output_size"]
    if operation == "adaptive_avg_pool":
        return function(x, size)
    return function(x, size, config.get("return_indices", False))


def max_unpool(config: dict[str, Any], x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    rank = x.ndim - 2
    function = getattr(F, f"max_unpool{rank}d")
    size = per_axis(config["output_size"], rank)
    # PyTorch holds a given size to its guess from kernel and stride; these make it guess right.
    stride = [max(1, n // m) for n, m in zip(size, x.shape[2:], strict=True)]
    kernel = [n - (m - 1) * s for n, m, s in zip(size, x.shape[2:], stride, strict=True)]
    return function(x, indices, kernel, stride, 0, [*x.shape[:2], *size])


def forward(case: Case, t: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor | None]:
    operation, config = case["operation"], case["config"]
    if operation in ("conv", "conv_transpose"):
        linear = (conv if operation == "conv" else conv_transpose)(config, t)
        return activate(config.get("activation"), linear), None
    if operation == "activation":
        return activate(config, t["x"]), None
    if operation == "max_unpool":
        return max_unpool(config, t["x"], t["indices"]), None
    found = pool(operation, config, t["x"])
    return found if isinstance(found, tuple) else (found, None)


def weight_order(case: Case, rank: int) -> tuple[str, str]:
    config, space = case["config"], "DHW"[3 - rank :]
    first = ("IO" if case["operation"] == "conv_transpose" else "OI") + space
    last = str(config.get("layout", "")).endswith("C")
    return config.get("weight_layout", space + "IO" if last else first), first


def answers(case: Case) -> Arrays:
    """PyTorch's y, gradients and indices, in the case's layouts."""
    given = inputs(case)
    # A case without the shape of dy is still being made; ones stand in for it.
    rank = given["x"].ndim - 2
    last = str(case["config"].get("layout", "")).endswith("C")
    order, first = weight_order(case, rank)
    leaves = {
        name: torch.from_numpy(a).requires_grad_(name not in ("indices", "dy"))
        for name, a in given.items()
    }
    t = dict(leaves)
    if last:
        t = {
            name: a.movedim(-1, 1) if a.ndim == rank + 2 and name != "weight" else a
            for name, a in t.items()
        }
    if "weight" in t:
        t["weight"] = t["weight"].permute([order.index(letter) for letter in first])
    y, indices = forward(case, t)
    torch.autograd.backward(y, t["dy"] if "dy" in t else torch.ones_like(y))
    found: dict[str, Any] = {"y": y.movedim(1, -1) if last else y, "dx": leaves["x"].grad}
    found |= {"d" + name: leaves[name].grad for name in ("weight", "bias") if name in leaves}
    if indices is not None:
        found["indices"] = indices.movedim(1, -1) if last else indices
    samples = len(given["x"])
    if case["config"].get("grad_reduction") == "mean" and samples:
        for name in ("dweight", "dbias"):
            if name in found:
                found[name] = found[name] / samples
    return {name: np.ascontiguousarray(a.detach().numpy()) for name, a in found.items()}
