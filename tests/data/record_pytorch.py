"""Record what PyTorch computes for some hundreds of configurations: `pytorch.npz` beside this file.

    python -m tests.data.record_pytorch          (from the repository root)

Needs PyTorch and expecttest; the tests that replay the recording need neither. The file holds the
cases as JSON text (inputs are a seed and a formula, see tests/engine/values.py) and PyTorch's
answers one after another, their bytes grouped by significance, which zlib packs far better. Nothing
in it is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.data.pytorch_cases import answers
from tests.data.pytorch_opinfo import cases as opinfo_cases
from tests.data.recorded import FILE, Arrays, Case, pack

LARGEST = 1200
"""Numbers in the answer of one recorded case."""

ACTIVATIONS: list[Any] = [
    "identity",
    "relu",
    "leaky_relu",
    {"name": "leaky_relu", "alpha": 0.25},
    "elu",
    {"name": "elu", "alpha": 0.5},
    "selu",
    "gelu",
    {"name": "gelu", "approximate": True},
    "silu",
    "sigmoid",
    "hard_sigmoid",
    {"name": "hard_sigmoid", "alpha": 1 / 3, "beta": 0.4},
    "tanh",
    "softplus",
    "exponential",
    {"name": "affine", "slope": -2.5, "intercept": 0.75},
]
SPACE = {1: [9], 2: [6, 7], 3: [4, 5, 4]}


def case(
    operation: str, config: dict[str, Any], x: list[int], *more: list[int], **how: Any
) -> Case:
    shapes = dict(zip(("x", "weight", "bias"), (x, *more), strict=False))
    return {
        "operation": operation,
        "config": config,
        "shapes": shapes,
        "kind": "dense",
        "dtype": "float64",
    } | how


def conv_cases() -> Iterator[Case]:
    for rank, size in SPACE.items():
        x, w, b = [2, 4, *size], [4, 4, *[3] * rank], [4]
        for stride, padding, dilation in product((1, 2), (0, 1, 2), (1, 2)):
            if dilation * 2 < min(size) + 2 * padding:
                config: dict[str, Any] = {
                    "stride": stride,
                    "padding": padding,
                    "dilation": dilation,
                }
                yield case("conv", config, [1, 2, *size], [2, 2, *w[2:]], [2])
        for groups in (2, 4):
            yield case("conv", {"groups": groups, "padding": 1}, x, [4, 4 // groups, *w[2:]], b)
        yield case("conv", {"groups": 2, "padding": "valid"}, x, [6, 2, *[1] * rank])
        for mode in ("zeros", "reflect", "replicate", "circular"):
            pads = [[1, 2], [3, 0], [0, 1]][:rank]
            config = {"padding": pads, "padding_mode": mode, "stride": 2}
            yield case("conv", config, [1, 2, *size], [2, 2, *w[2:]], [2])
        yield case("conv", {"padding": "same"}, [1, 2, *size], [1, 2, *[4] * rank], [1])
        yield case("conv", {"padding": "same", "dilation": 3}, [1, 2, *size], [1, 2, *[2] * rank])
        yield case("conv", {"flip_kernel": True, "padding": 1}, x, [2, 4, *w[2:]], [2])
        yield case("conv", {}, x, [2, 4, *[1] * rank], [2], dtype="float32")
        yield case("conv", {"grad_reduction": "mean"}, x, [2, 4, *w[2:]], [2])
        yield case("conv", {}, [0, *x[1:]], [2, 4, *w[2:]], [2])
        yield from channels_last_cases("conv", rank, size)
    for activation in ACTIVATIONS:
        config = {"activation": activation, "padding": 1}
        yield case("conv", config, [2, 2, 4, 3], [3, 2, 2, 2], [3])
    for dtype in ("float32", "float64"):
        yield case("conv", {"padding": 1}, [1, 16, 4, 4], [8, 16, 3, 3], [8], dtype=dtype)


def channels_last_cases(operation: str, rank: int, size: list[int]) -> Iterator[Case]:
    space = "DHW"[3 - rank :]
    layout, taps = f"N{space}C", [2, 3, 2][:rank]
    yield case(operation, {"layout": layout}, [2, *size, 3], [*taps, 3, 2], [2])
    config = {"layout": layout, "weight_layout": f"O{space}I", "stride": 2}
    yield case(operation, config, [1, *size, 3], [3, *taps, 3], [3])
    config = {"weight_layout": f"I{space}O", "dilation": 2}
    yield case(operation, config, [1, 2, *size], [2, *taps[:1], *[2] * (rank - 1), 2], [2])


def transpose_cases() -> Iterator[Case]:
    for rank, size in {1: [5], 2: [3, 4], 3: [2, 3, 2]}.items():
        x, w = [2, 2, *size], [2, 3, *[3] * rank]
        for stride, padding, dilation, extra in product((1, 2, 3), (0, 1), (1, 2), (0, 1)):
            if extra < max(stride, dilation) and (rank < 3 or (stride < 3 and extra == 0)):
                config = {
                    "stride": stride,
                    "padding": padding,
                    "dilation": dilation,
                    "output_padding": extra,
                }
                yield case("conv_transpose", config, [1, *x[1:]], [2, 2, *w[2:]], [2])
        yield case("conv_transpose", {"groups": 2}, [2, 4, *size], [4, 1, *[2] * rank], [2])
        yield case("conv_transpose", {"flip_kernel": True}, x, w, [3])
        yield case("conv_transpose", {"grad_reduction": "mean"}, x, w, [3])
        yield case("conv_transpose", {}, x, w, [3], dtype="float32")
        yield case("conv_transpose", {}, [0, *x[1:]], w, [3])
        yield from channels_last_cases("conv_transpose", rank, size)
    for activation in ("relu", "tanh", {"name": "elu", "alpha": 2.0}, "softplus"):
        activated = {"activation": activation, "stride": 2}
        yield case("conv_transpose", activated, [2, 2, 2, 3], [2, 2, 3, 3], [2])


def pool_cases() -> Iterator[Case]:
    for rank, size in SPACE.items():
        x = [2, 2, *size]
        for kernel, stride, padding, ceil in product((2, 3), (None, 1, 2), (0, 1), (False, True)):
            if rank == 3 and (stride == 1 or kernel == 3):
                continue
            config = {"kernel": kernel, "padding": padding, "ceil_mode": ceil}
            config |= {} if stride is None else {"stride": stride}
            yield case("max_pool", config | {"return_indices": True}, x, kind="ties")
            yield case("avg_pool", config | {"count_include_pad": kernel == 2}, [1, *x[1:]])
        yield case("max_pool", {"kernel": 2, "dilation": 2, "stride": 1, "return_indices": True}, x)
        pads = [[0, 2], [3, 1], [1, 0]][:rank]
        yield case("max_pool", {"kernel": 2, "stride": 1, "padding": pads}, [1, *x[1:]])
        yield case("max_pool", {"kernel": 3, "stride": 2, "return_indices": True}, x, nan=[7])
        last = [2, *size, 3]
        layout = f"N{'DHW'[3 - rank :]}C"
        for operation in ("max_pool", "avg_pool"):
            yield case(operation, {"kernel": 2, "layout": layout}, last)
            yield case(operation, {"kernel": 2}, [0, *x[1:]])
            yield case(operation, {"kernel": 2}, x, dtype="float32")
        if rank > 1:
            yield case("avg_pool", {"kernel": 2, "padding": 1, "divisor_override": 3}, x)
        for p in (1.0, 2.0, 3.0, 0.5, 4.5):
            yield case("lp_pool", {"kernel": 2, "p": p}, [1, *x[1:]], kind="positive")
        yield case("lp_pool", {"kernel": [3, 2, 2][:rank] if rank > 1 else 3, "stride": 1}, x)
        yield case("lp_pool", {"kernel": 2, "layout": layout}, last)


def adaptive_cases() -> Iterator[Case]:
    for rank, size in SPACE.items():
        x = [2, 2, *size]
        sizes = [1, 2, 3, [5, 2, 3][:rank], [7, 9, 5][:rank]]
        sizes += [[None, 2, None][:rank]] if rank > 1 else []
        for asked in sizes:
            yield case("adaptive_avg_pool", {"output_size": asked}, [1, *x[1:]])
            config = {"output_size": asked, "return_indices": True}
            yield case("adaptive_max_pool", config, [1, *x[1:]], kind="ties")
        layout = f"N{'DHW'[3 - rank :]}C"
        for operation in ("adaptive_avg_pool", "adaptive_max_pool"):
            yield case(operation, {"output_size": 2, "layout": layout}, [1, *size, 3])


def unpool_cases() -> Iterator[Case]:
    for rank, size in SPACE.items():
        for small in ([2, 3, 2][:rank], [1] * rank):
            shape = [2, 2, *small]
            one = case("max_unpool", {"output_size": size}, shape)
            one["shapes"]["indices"] = shape
            yield one


def activation_cases() -> Iterator[Case]:
    for activation in ACTIVATIONS:
        config = {"name": activation} if isinstance(activation, str) else activation
        yield case("activation", config, [2, 2, 12])
    yield case("activation", {"name": "relu"}, [1, 3, 4, 4], kind="ties")


def chosen_opinfo() -> Iterator[Case]:
    """Every sample, but only a spread of the thousands for max_pool and max_unpool."""
    for number, one in enumerate(opinfo_cases()):
        if one["operation"] not in ("max_pool", "max_unpool") or number % 31 == 0:
            yield one


def all_cases() -> Iterator[Case]:
    for made in (
        chosen_opinfo,
        conv_cases,
        transpose_cases,
        pool_cases,
        adaptive_cases,
        unpool_cases,
        activation_cases,
    ):
        yield from made()


def complete(one: Case, seed: int) -> Case:
    """Give the case its seed and the shape of dy, which PyTorch's y settles."""
    one["seed"] = seed
    one["shapes"].pop("dy", None)
    shape = list(answers(one)["y"].shape)
    one["shapes"]["dy"] = shape
    return one


def main() -> None:
    torch.set_num_threads(1)
    cases: list[Case] = []
    found: list[Arrays] = []
    seen: set[str] = set()
    for one in all_cases():
        key = json.dumps([one[k] for k in ("operation", "config", "shapes", "kind", "dtype")])
        if key in seen:
            continue
        seen.add(key)
        one = complete(one, len(cases) + 1)
        answer = answers(one)
        if sum(a.size for a in answer.values()) <= LARGEST:
            cases.append(one)
            found.append(answer)
    packed: dict[str, Any] = pack(cases, found)
    np.savez_compressed(FILE, **packed)
    print(f"{len(cases)} cases, {Path(FILE).stat().st_size / 2**10:.0f} KiB")


if __name__ == "__main__":
    main()
