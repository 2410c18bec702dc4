"""What is said of names from elsewhere: the right one where that is sure, and nothing where it is not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import engine
from engine import errors, words
from engine.resolve import FLOATS, INTEGERS
from engine.words import FOREIGN, MOST, counted, did_you_mean, hints, one_of

CONV = {"x": np.zeros((1, 1, 3, 3)), "weight": np.zeros((1, 1, 1, 1))}
X = {"x": np.zeros((1, 1, 3, 3))}


def said(call: Any, *args: Any, **tensors: Any) -> str:
    with pytest.raises(errors.EngineError) as caught:
        call(*args, **tensors)
    return " ".join(issue.msg for issue in caught.value.issues)


@pytest.mark.parametrize(
    ("operation", "config", "meant"),
    [
        ("conv", {"paddding": 1}, "padding"),
        ("conv", {"Stride": 1}, "stride"),
        ("conv", {"strides": 1}, "stride"),
        ("conv", {"pads": 1}, "padding"),
        ("conv", {"dilation_rate": 1}, "dilation"),
        ("conv", {"rhs_dilation": 1}, "dilation"),
        ("conv", {"window_strides": 1}, "stride"),
        ("max_pool", {"kernel": 2, "window_dimensions": 2}, "kernel"),
        ("conv", {"group": 1}, "groups"),
        ("conv", {"data_format": "NHWC"}, "layout"),
        ("conv", {"layout": "channels_last"}, "NHWC"),
        ("conv", {"padding": "SAME_UPPER"}, "same"),
        ("conv", {"padding": "VALID"}, "valid"),
        ("conv", {"padding_mode": "edge"}, "replicate"),
        ("conv", {"activation": "swish"}, "silu"),
        ("conv", {"activation": {"name": "leaky_relu", "negative_slope": 0.1}}, "alpha"),
        ("conv", {"activation": {"name": "gelu", "approximate": "tanh"}}, "true"),
        ("conv", {"activation": {"name": "gelu", "approximate": "none"}}, "false"),
        ("max_pool", {"kernel": 2, "kernel_size": 2}, "kernel"),
        ("lp_pool", {"kernel": 2, "norm_type": 2}, "p"),
    ],
)
def test_a_field_or_a_value_of_another_library_is_told_ours(
    operation: str, config: dict[str, Any], meant: str
) -> None:
    tensors = CONV if operation == "conv" else X
    assert f"; did you mean {meant}?" in said(engine.forward, operation, config, **tensors)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("conv2d", "conv"),
        ("Conv1d", "conv"),
        ("MaxPool2d", "max_pool"),
        ("avg_pool3d", "avg_pool"),
        ("ConvTranspose2d", "conv_transpose"),
        ("Conv2DTranspose", "conv_transpose"),
        ("GlobalAveragePool", "adaptive_avg_pool"),
        ("relu", "activation"),
        ("max_pol", "max_pool"),
    ],
)
def test_an_operation_of_another_library_is_told_ours(name: str, meant: str) -> None:
    assert said(engine.forward, name, {}, **X).endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("input", "x"), ("X", "x"), ("W", "weight"), ("kernel", "weight"), ("b", "bias")],
)
def test_a_tensor_of_another_library_is_told_ours(name: str, meant: str) -> None:
    tensors = CONV | {name: np.zeros(1)}
    assert f"; did you mean {meant}?" in said(engine.forward, "conv", {}, **tensors)


def test_gradients_too() -> None:
    assert "did you mean dy?" in said(engine.backward, "conv", {}, **CONV, grad_output=np.zeros(1))
    dy = np.zeros((1, 1, 3, 3))
    assert "did you mean dx?" in said(engine.backward, "conv", {}, ["grad_input"], **CONV, dy=dy)


def test_what_the_tensors_tell_is_told() -> None:
    assert said(engine.forward, "conv", {"kernel_size": 3}, **CONV).endswith(
        "; the shape of weight tells it"
    )
    assert "weight" not in said(engine.forward, "max_unpool", {"kernel_size": 3}, **X)


@pytest.mark.parametrize(
    ("operation", "config", "reason"),
    [
        (
            "conv",
            {"lhs_dilation": 2},
            "zeros between the numbers of x are the stride of conv_transpose",
        ),
        ("max_pool", {"kernel": 2, "base_dilation": 2}, "x is not dilated here"),
        ("max_pool", {"kernel": 2, "count_include_pad": True}, "only avg_pool has it"),
        ("conv", {"output_padding": 1}, "only conv_transpose has it"),
        ("conv", {"use_bias": True}, "it is a tensor, beside config"),
        ("conv", {"depth_multiplier": 2}, "groups and the shape of weight tell it"),
    ],
)
def test_of_a_field_that_is_not_here_it_is_told_where_it_is(
    operation: str, config: dict[str, Any], reason: str
) -> None:
    tensors = CONV if operation == "conv" else X
    assert said(engine.forward, operation, config, **tensors).endswith(f"; {reason}")


def test_where_there_is_one_way_to_pad_it_is_told() -> None:
    config = {"padding_mode": "zeros"}
    assert said(engine.forward, "conv_transpose", config, **CONV).endswith(
        "; it always pads with zeros"
    )


def test_a_field_of_another_operation_is_no_slip_of_one_here() -> None:
    config = {"kernel": 2, "padding_mode": "reflect"}
    assert said(engine.forward, "max_pool", config, **X).endswith("; only conv has it")


@pytest.mark.parametrize("name", ["foo", "relu6", "", "p" * 33, 7, None])
def test_where_nothing_is_sure_nothing_is_said(name: object) -> None:
    assert did_you_mean(name, ["padding", "relu", "name"]) == ""


def test_every_name_of_ours_in_the_table_exists() -> None:
    catalogue = engine.operations()
    known = str(catalogue) + str(FLOATS + INTEGERS) + "forward backward plan NWC NCW NDHWC NCDHW"
    assert [name for name in FOREIGN if name not in known] == []


def test_what_tensors_are_is_said_with_fields_that_their_config_has() -> None:
    for name, entry in engine.operations().items():
        fields = entry["config"].get("properties", {})
        for tensor, about in entry["tensors"].items():
            named = re.findall("`([a-z_]*layout)`", about["description"])
            assert fields.keys() >= set(named), (name, tensor)


def test_counts_and_lists_of_names() -> None:
    assert [counted(n, "item") for n in (0, 1, 2)] == ["0 items", "1 item", "2 items"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
    assert (one_of(["x"]), one_of(["x", "dy"])) == ("x", "one of x, dy")


def test_of_a_thousand_unknown_names_few_are_compared_and_all_are_told() -> None:
    asked: list[str] = []

    def hint(name: str) -> str:
        asked.append(name)
        return "; did you mean it?"

    names = [f"strid{number}" for number in range(1000)]
    said = list(hints(names, hint))
    assert [name for name, _ in said] == names
    assert asked == names[:MOST]
    assert {text for _, text in said[MOST:]} == {""}


@pytest.mark.parametrize("where", ["config", "activation"])
def test_a_thousand_unknown_fields_are_refused_without_a_look_at_each(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def none_close(name: str, *_: object) -> list[str]:
        asked.append(name)
        return []

    monkeypatch.setattr(words, "get_close_matches", none_close)
    fields: dict[str, Any] = {
        f"wieght{letter}": 1 for letter in map(chr, range(0x4E00, 0x4E00 + 1000))
    }
    config = fields if where == "config" else {"activation": {"name": "elu", **fields}}
    assert said(engine.forward, "conv", config, **CONV).count("no such field") == 1000
    assert len(asked) == MOST


def test_names_of_more_than_32_characters_are_not_compared() -> None:
    """Comparing takes time that grows with the square of their length."""
    known = "a" * 31
    assert did_you_mean(known + "b", [known]) == f"; did you mean {known}?"
    assert did_you_mean(known + "bb", [known]) == ""
