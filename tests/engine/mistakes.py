"""Ways to get a request wrong: each turns a legal layer into an illegal one, and says what the
engine must answer.

A mistake is a function of (draw, layer, tensors); it may change the config (a fresh dict) and the
tensors, and returns the error's class and the beginning of the path that the error must have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine import errors
from tests.engine.reference.geometry import extent, per_axis
from tests.engine.strategies import SPATIAL, Arrays, Draw, Layer

Loc = tuple[str | int, ...]
Blame = tuple[type[errors.EngineError], Loc]

WINDOWED = ("max_pool", "avg_pool", "lp_pool")
CONVS = ("conv", "conv_transpose")
SPACED = (*CONVS, *WINDOWED, "adaptive_max_pool", "adaptive_avg_pool", "max_unpool")

JUNK: list[Any] = [True, False, "2", 1.5, {}, {"a": 1}, float("nan"), 2**31, -1, [[1]], b"1"]


@dataclass
class Request:
    """A request in the making."""

    layer: Layer
    config: dict[str, Any]
    tensors: Arrays

    @property
    def rank(self) -> int:
        return self.layer.rank

    @property
    def last(self) -> bool:
        return str(self.config.get("layout")).endswith("C")

    @property
    def size(self) -> tuple[int, ...]:
        shape = self.layer.shapes["x"]
        return shape[1:-1] if self.last else shape[2:]


Mistake = Callable[[Draw, Request], Blame]
MISTAKES: list[tuple[Sequence[str], Mistake]] = []


def about(*operations: str) -> Callable[[Mistake], Mistake]:
    def keep(mistake: Mistake) -> Mistake:
        MISTAKES.append((operations, mistake))
        return mistake

    return keep


def mistakes_of(operation: str) -> list[Mistake]:
    return [mistake for operations, mistake in MISTAKES if operation in operations]


def pick(draw: Draw, *choices: Any) -> Any:
    return draw(st.sampled_from(choices))


@about(*SPACED, "activation")
def unknown_field(draw: Draw, request: Request) -> Blame:
    name = pick(draw, "paddding", "Stride", "kernel_size", "", "input shape", "x")
    request.config[name] = 1
    return errors.UnknownField, ("config", name)


@about(*SPACED, "activation")
def unknown_tensor(draw: Draw, request: Request) -> Blame:
    name = pick(draw, "input", "X", "dy", "y")
    request.tensors[name] = np.zeros((1, 1, 1))
    return errors.UnknownField, (name,)


@about(*SPACED, "activation")
def missing_tensor(draw: Draw, request: Request) -> Blame:
    name = pick(draw, *[n for n in request.tensors if n != "bias"])
    del request.tensors[name]
    return errors.MissingField, (name,)


@about(*SPACED)
def bad_layout(draw: Draw, request: Request) -> Blame:
    space = SPATIAL[request.rank]
    request.config["layout"] = pick(
        draw, "NCX", "", f"C{space}N", f"nc{space.lower()}", "NCWH", 5, ["N", "C", *space], True
    )
    return errors.InvalidValue, ("config", "layout")


@about(*CONVS)
def bad_weight_layout(draw: Draw, request: Request) -> Blame:
    space = SPATIAL[request.rank]
    request.config["weight_layout"] = pick(draw, "OI", f"OC{space}", f"OO{space}", f"OI{space}N", 3)
    return errors.InvalidValue, ("config", "weight_layout")


@about(*CONVS, *WINDOWED)
def bad_window_field(draw: Draw, request: Request) -> Blame:
    names = ["stride", "dilation", *(["kernel"] if request.layer.operation in WINDOWED else [])]
    name = pick(draw, *names)
    bad = pick(draw, 0, -3, *JUNK[:-2])
    if draw(st.booleans()):
        request.config[name] = bad
        return errors.InvalidValue, ("config", name)
    axis = draw(st.integers(0, request.rank - 1))
    values = [1] * request.rank
    values[axis] = bad
    request.config[name] = values
    return errors.InvalidValue, ("config", name, axis)


@about(*CONVS, *WINDOWED)
def wrong_number_of_axes(draw: Draw, request: Request) -> Blame:
    name = pick(draw, "stride", "dilation", "padding")
    count = draw(st.integers(0, 5).filter(lambda n: n != request.rank))
    request.config[name] = [1] * count
    return errors.InvalidValue, ("config", name)


@about(*CONVS, *WINDOWED)
def bad_padding(draw: Draw, request: Request) -> Blame:
    rank = request.rank
    where: Loc = ("config", "padding")
    request.config["padding"], path = pick(
        draw,
        (-1, where),
        (True, where),
        (1.0, where),
        ("sane", where),
        ("", where),
        ({}, where),
        ([[1, 2, 3]] * rank, (*where, 0)),
        ([[]] * rank, (*where, 0)),
        ([[0, -1]] * rank, (*where, 0, 1)),
        ([[0, 1]] * (rank - 1) + [["1", 0]], (*where, rank - 1, 0)),
        ([None] * rank, (*where, 0)),
        (2**40, where),
    )
    return errors.InvalidValue, path


@about(*WINDOWED)
def padding_of_convolutions(draw: Draw, request: Request) -> Blame:
    request.config["padding"] = pick(draw, "full", "causal")
    return errors.InvalidValue, ("config", "padding")


@about(*CONVS)
def causal_in_the_plane(draw: Draw, request: Request) -> Blame:  # noqa: ARG001
    request.config["padding"] = "causal" if request.rank > 1 else "Causal"
    request.config.pop("output_size", None)
    return errors.InvalidValue, ("config", "padding")


@about("conv")
def bad_padding_mode(draw: Draw, request: Request) -> Blame:
    request.config["padding_mode"] = pick(draw, "mirror", "", None, 1, "Zeros")
    return errors.InvalidValue, ("config", "padding_mode")


@about("conv")
def reflects_too_far(draw: Draw, request: Request) -> Blame:
    request.config["padding_mode"] = "reflect"
    axis = draw(st.integers(0, request.rank - 1))
    pads = [[0, 0] for _ in range(request.rank)]
    kernel = dict(zip(weight_letters(request), request.layer.shapes["weight"], strict=True))
    dilation = per_axis(request.config.get("dilation", 1), request.rank)
    for a, letter in enumerate(SPATIAL[request.rank]):
        pads[a][0] = max(0, extent(kernel[letter], dilation[a]) - request.size[a])
    pads[axis][draw(st.integers(0, 1))] = (
        request.size[axis] + draw(st.integers(0, 2)) + sum(pads[axis])
    )
    request.config["padding"] = pads
    return errors.InvalidRequest, ("config", "padding")


def channel_axis(request: Request) -> int:
    return request.rank + 1 if request.last else 1


def weight_letters(request: Request) -> str:
    space = SPATIAL[request.rank]
    first = "IO" if request.layer.operation == "conv_transpose" else "OI"
    default = space + "IO" if request.last else first + space
    return request.config.get("weight_layout") or default


@about(*CONVS)
def bad_groups(draw: Draw, request: Request) -> Blame:
    request.config["groups"] = pick(draw, 0, -1, True, "1", 1.0, [1], None)
    return errors.InvalidValue, ("config", "groups")


@about(*CONVS)
def channels_do_not_fit(draw: Draw, request: Request) -> Blame:
    letters = weight_letters(request)
    axis = letters.index("I")
    shape = list(request.tensors["weight"].shape)
    shape[axis] += draw(st.integers(1, 3)) * 7
    request.tensors["weight"] = np.zeros(shape)
    return errors.InvalidRequest, ("weight", "shape", axis)


@about(*CONVS)
def channels_do_not_divide_into_groups(draw: Draw, request: Request) -> Blame:
    place = channel_axis(request)
    channels = request.tensors["x"].shape[place]
    request.config["groups"] = channels + draw(st.integers(1, 3))
    return errors.ShapeMismatch, ("x", "shape", place)


@about("conv")
def outputs_do_not_divide_into_groups(draw: Draw, request: Request) -> Blame:
    request.config["groups"] = 2
    x, weight = (list(request.tensors[name].shape) for name in ("x", "weight"))
    x[channel_axis(request)] = 2
    axis = weight_letters(request).index("O")
    weight[axis] = pick(draw, 1, 3, 5)
    request.tensors.update(x=np.zeros(x), weight=np.zeros(weight))
    return errors.ShapeMismatch, ("weight", "shape", axis)


@about(*CONVS)
def wrong_bias(draw: Draw, request: Request) -> Blame:
    channels = 50
    request.tensors["bias"] = np.zeros(pick(draw, (), (channels,), (1, channels)))
    return errors.ShapeMismatch, ("bias",)


@about(*CONVS)
def wrong_weight_rank(draw: Draw, request: Request) -> Blame:
    weight = request.tensors["weight"]
    request.tensors["weight"] = pick(draw, weight[0], weight[None], np.zeros(()))
    return errors.ShapeMismatch, ("weight",)


@about(*SPACED, "activation")
def wrong_rank(draw: Draw, request: Request) -> Blame:
    most = 32 if request.layer.operation == "activation" else 6
    shape = (1,) * pick(draw, 0, most) if most == 6 else ()
    request.tensors["x"] = np.zeros(shape)
    if "indices" in request.tensors:
        request.tensors["indices"] = np.zeros(shape, np.int64)
    return errors.ShapeMismatch, ("x",)


@about(*SPACED)
def empty_axis(draw: Draw, request: Request) -> Blame:
    axis = draw(st.integers(1, request.rank + 1))
    shape = list(request.tensors["x"].shape)
    shape[axis] = 0
    request.tensors["x"] = np.zeros(shape)
    if "indices" in request.tensors:
        request.tensors["indices"] = np.zeros(shape, np.int64)
    return errors.ShapeMismatch, ("x", "shape", axis)


@about(*SPACED, "activation")
def foreign_dtype(draw: Draw, request: Request) -> Blame:
    dtype = pick(draw, "complex64", "bool", "U1", "object", "datetime64[s]", "longdouble", "uint64")
    request.tensors["x"] = np.zeros(request.tensors["x"].shape, dtype)
    return errors.DtypeMismatch, ("x",)


@about(*CONVS)
def mixed_dtypes(draw: Draw, request: Request) -> Blame:
    request.tensors["weight"] = request.tensors["weight"].astype(pick(draw, "float32", "int32"))
    return errors.DtypeMismatch, ("weight",)


@about("conv", *WINDOWED)
def no_room_for_a_window(draw: Draw, request: Request) -> Blame:
    axis = draw(st.integers(0, request.rank - 1))
    for name in ("padding", "dilation", "ceil_mode", "padding_mode", "stride"):
        request.config.pop(name, None)
    place = axis + (1 if request.last else 2)
    if request.layer.operation == "conv":
        letters = weight_letters(request)
        shape = [
            1 if letter in SPATIAL[request.rank] else n
            for letter, n in zip(letters, request.tensors["weight"].shape, strict=True)
        ]
        shape[letters.index(SPATIAL[request.rank][axis])] = request.size[axis] + 1
        request.tensors["weight"] = np.zeros(shape)
    else:
        kernel = [1] * request.rank
        kernel[axis] = request.size[axis] + draw(st.integers(1, 3))
        request.config["kernel"] = kernel
    return errors.EmptyOutput, ("x", "shape", place)


@about(*CONVS)
def bad_activation(draw: Draw, request: Request) -> Blame:
    request.config["activation"] = pick(
        draw,
        "rleu",
        "",
        {"name": "relu", "alpha": 1},
        {"alpha": 1},
        {},
        {"name": None},
        {"name": "elu", "alpha": "1"},
        {"name": "elu", "alpha": float("inf")},
        {"name": "gelu", "approximate": 1},
        {"name": ["relu"]},
        ["relu"],
        3,
        True,
    )
    return errors.InvalidRequest, ("config", "activation")


@about("activation")
def bad_activation_alone(draw: Draw, request: Request) -> Blame:
    bad, path = pick(
        draw,
        ({}, ("config", "name")),
        ({"name": "rleu"}, ("config", "name")),
        ({"name": 5}, ("config", "name")),
        ({"name": {"name": "relu"}}, ("config", "name")),
        ({"name": "elu", "alpha": True}, ("config", "alpha")),
        ({"name": "elu", "alpha": float("nan")}, ("config", "alpha")),
        ({"name": "relu", "alpha": 1.0}, ("config", "alpha")),
        ({"name": "gelu", "approximate": "tanh"}, ("config", "approximate")),
    )
    request.config.clear()
    request.config.update(bad)
    return errors.InvalidRequest, path


@about(*CONVS)
def bad_name(draw: Draw, request: Request) -> Blame:
    name = pick(draw, "algorithm", "grad_reduction")
    request.config[name] = pick(draw, "turbo", "", 0, None, "SUM", ["auto"])
    return errors.InvalidValue, ("config", name)


@about(*CONVS, *WINDOWED, "adaptive_max_pool")
def not_a_flag(draw: Draw, request: Request) -> Blame:
    name = {
        "conv": "flip_kernel",
        "conv_transpose": "flip_kernel",
        "max_pool": pick(draw, "ceil_mode", "return_indices"),
        "avg_pool": pick(draw, "ceil_mode", "count_include_pad"),
        "lp_pool": "ceil_mode",
        "adaptive_max_pool": "return_indices",
    }[request.layer.operation]
    request.config[name] = pick(draw, 1, 0, "true", None, [], 1.0)
    return errors.InvalidValue, ("config", name)


@about("conv_transpose")
def too_much_output_padding(draw: Draw, request: Request) -> Blame:
    axis = draw(st.integers(0, request.rank - 1))
    stride, dilation = (
        per_axis(request.config.get(name, 1), request.rank)[axis] for name in ("stride", "dilation")
    )
    values = [0] * request.rank
    values[axis] = max(stride, dilation) + draw(st.integers(0, 3))
    request.config.pop("output_size", None)
    request.config["output_padding"] = values
    return errors.InvalidValue, ("config", "output_padding", axis)


@about("conv_transpose")
def output_size_out_of_reach(draw: Draw, request: Request) -> Blame:
    request.config.pop("output_padding", None)
    request.config["padding"] = 0
    request.config["output_size"] = pick(draw, 1000, [1000] * request.rank)
    return errors.InvalidRequest, ("config", "output_size")


@about("max_pool")
def bad_choice(draw: Draw, request: Request) -> Blame:
    name = pick(draw, "ties", "pad_value")
    request.config[name] = pick(draw, "last", "one", 0, None, True)
    return errors.InvalidValue, ("config", name)


@about(*WINDOWED)
def missing_kernel(draw: Draw, request: Request) -> Blame:  # noqa: ARG001
    del request.config["kernel"]
    return errors.MissingField, ("config", "kernel")


@about("avg_pool")
def bad_divisor(draw: Draw, request: Request) -> Blame:
    request.config["divisor_override"] = pick(draw, 0, 1.5, True, "4", [2], 2**31)
    return errors.InvalidValue, ("config", "divisor_override")


@about("lp_pool")
def bad_p(draw: Draw, request: Request) -> Blame:
    request.config["p"] = pick(draw, 0, -1.0, float("inf"), float("nan"), "2", True, None, 10**400)
    return errors.InvalidValue, ("config", "p")


@about("adaptive_max_pool", "adaptive_avg_pool", "max_unpool")
def bad_output_size(draw: Draw, request: Request) -> Blame:
    bad = pick(draw, 0, -1, True, 1.5, "1", {}, 2**31, [1] * (request.rank + 1), [])
    request.config["output_size"] = bad
    return errors.InvalidValue, ("config", "output_size")


@about("adaptive_max_pool", "adaptive_avg_pool", "max_unpool")
def missing_output_size(draw: Draw, request: Request) -> Blame:  # noqa: ARG001
    del request.config["output_size"]
    return errors.MissingField, ("config", "output_size")


@about("max_unpool")
def indices_of_another_shape(draw: Draw, request: Request) -> Blame:
    *head, tail = request.tensors["indices"].shape
    shape = pick(draw, (*head, tail, 1), (*head, tail + 1), (head[0] + 1, *head[1:], tail))
    request.tensors["indices"] = np.zeros(shape, np.int64)
    return errors.InvalidRequest, ()


@about("max_unpool")
def indices_that_are_not_integers(draw: Draw, request: Request) -> Blame:
    dtype = pick(draw, "float32", "float64", "bool", "complex64")
    request.tensors["indices"] = request.tensors["indices"].astype(dtype)
    return errors.DtypeMismatch, ("indices",)


@about("max_unpool")
def index_outside_the_plane(draw: Draw, request: Request) -> Blame:
    shape = (1, *request.layer.shapes["x"][1:])
    request.tensors["x"] = np.ones(shape)
    indices = np.zeros(shape, np.int64)
    place = draw(st.integers(0, indices.size - 1))
    indices.reshape(-1)[place] = pick(draw, request.layer.plane, -2, 2**62, -(2**63))
    request.tensors["indices"] = indices
    return errors.InvalidIndices, ("indices",)
