"""The ONNX standard's own node cases, which the `onnx` package brings with their expected outputs.

| operator          | cases | run as             | how                                                |
| ----------------- | ----- | ------------------ | -------------------------------------------------- |
| Conv              | 6     | conv               | pads to [low, high] pairs, auto_pad to its name    |
| ConvTranspose     | 11    | conv_transpose     | output_shape to output_size                        |
| MaxPool           | 19    | max_pool           | uint8 is computed in float32 and compared as such; |
|                   |       |                    | storage_order 1 counts columns first: recomputed   |
| AveragePool       | 20    | avg_pool           | count_include_pad is off by default there          |
| LpPool            | 8     | lp_pool            |                                                    |
| GlobalMaxPool     | 2     | adaptive_max_pool  | output_size 1                                      |
| GlobalAveragePool | 2     | adaptive_avg_pool  | output_size 1                                      |
| MaxUnpool         | 2     | max_unpool         | indices count over the pooled window's own size;   |
|                   |       |                    | a larger output_shape pads that at its far ends    |

None of these is left out. GlobalLpPool has no case. Left out with their operators, which are not
ours: ConvInteger, QLinearConv (quantised), DeformConv, CausalConvWithState, MaxRoiPool.
`test_the_table_is_complete` fails where a new version of the package brings more.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine

onnx = pytest.importorskip("onnx", reason="the onnx package, which brings the cases, is optional")
pytestmark = pytest.mark.onnx

COUNTS = {
    "Conv": 6,
    "ConvTranspose": 11,
    "MaxPool": 19,
    "AveragePool": 20,
    "LpPool": 8,
    "GlobalMaxPool": 2,
    "GlobalAveragePool": 2,
    "MaxUnpool": 2,
}
AUTO_PAD = {"SAME_UPPER": "same", "SAME_LOWER": "same_lower", "VALID": "valid"}
Attributes = dict[str, Any]
Tensors = list[np.ndarray]


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Any]]:
    """The cases of each operator; making them runs ONNX's own reference, which warns."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    found: dict[str, list[Any]] = {operator: [] for operator in COUNTS}
    for case in loaded:
        assert case.model is not None
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in found:
            found[nodes[0].op_type].append(case)
    return found


def attributes(case: Any) -> Attributes:
    node = case.model.graph.node[0]
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in values.items()}


def padding(given: Attributes) -> Any:
    if "pads" in given:
        half = len(given["pads"]) // 2
        return [[low, high] for low, high in zip(given["pads"], given["pads"][half:], strict=False)]
    return AUTO_PAD.get(given.get("auto_pad", "NOTSET"), 0)


def renamed(given: Attributes, **names: str) -> dict[str, Any]:
    """The config fields that only have another name here."""
    common = {"strides": "stride", "dilations": "dilation", "group": "groups"}
    return {ours: given[name] for name, ours in (common | names).items() if name in given}


def convolution(operation: str) -> Callable[[Attributes, Tensors], Tensors]:
    def run(given: Attributes, tensors: Tensors) -> Tensors:
        names = {"output_shape": "output_size", "output_padding": "output_padding"}
        config = renamed(given, **names) | {"padding": padding(given)}
        named = dict(zip(("x", "weight", "bias"), tensors, strict=False))
        return [engine.forward(operation, config, **named)["y"]]

    return run


def pool(operation: str, **fixed: Any) -> Callable[[Attributes, Tensors], Tensors]:
    def run(given: Attributes, tensors: Tensors) -> Tensors:
        config = renamed(given, kernel_shape="kernel", p="p") | fixed
        config = {"stride": 1, "padding": padding(given)} | config
        config["ceil_mode"] = bool(given.get("ceil_mode", 0))
        if operation == "avg_pool":
            config["count_include_pad"] = bool(given.get("count_include_pad", 0))
        got = engine.forward(operation, config, x=tensors[0])
        if "indices" in got and given.get("storage_order"):
            rows, columns = tensors[0].shape[2:]
            got["indices"] = got["indices"] % columns * rows + got["indices"] // columns
        return list(got.values())

    return run


def global_pool(operation: str) -> Callable[[Attributes, Tensors], Tensors]:
    return lambda _, tensors: [engine.forward(operation, {"output_size": 1}, x=tensors[0])["y"]]


def unpool(given: Attributes, tensors: Tensors) -> Tensors:
    x, indices = tensors[:2]
    strides, kernel = given["strides"], given["kernel_shape"]
    size = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], strides, kernel, strict=True)]
    y = engine.forward("max_unpool", {"output_size": size}, x=x, indices=indices)["y"]
    shape = tensors[2] if len(tensors) > 2 else y.shape
    return [np.pad(y, [(0, int(n) - m) for n, m in zip(shape, y.shape, strict=True)])]


RUN: dict[str, Callable[[Attributes, Tensors], Tensors]] = {
    "Conv": convolution("conv"),
    "ConvTranspose": convolution("conv_transpose"),
    "MaxPool": pool("max_pool", return_indices=True),
    "AveragePool": pool("avg_pool"),
    "LpPool": pool("lp_pool"),
    "GlobalMaxPool": global_pool("adaptive_max_pool"),
    "GlobalAveragePool": global_pool("adaptive_avg_pool"),
    "MaxUnpool": unpool,
}


@pytest.mark.parametrize("operator", COUNTS)
def test_outputs_are_those_of_the_standard(operator: str, cases: dict[str, list[Any]]) -> None:
    for case in cases[operator]:
        for tensors, expected in case.data_sets:
            got = RUN[operator](attributes(case), [np.asarray(t) for t in tensors])
            assert len(got) >= len(expected)
            for actual, wanted in zip(got, expected, strict=False):
                assert actual.shape == wanted.shape, case.name
                np.testing.assert_allclose(
                    actual, wanted, rtol=case.rtol, atol=1e-6, err_msg=case.name
                )


def test_the_table_is_complete(cases: dict[str, list[Any]]) -> None:
    found = Counter({operator: len(listed) for operator, listed in cases.items()})
    assert found == COUNTS
