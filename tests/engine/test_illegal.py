"""Illegal requests raise the named error with the field's path; nothing crashes, nothing hangs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import errors
from tests.engine.mistakes import Mistake, Request, mistakes_of
from tests.engine.strategies import LAYERS

PAIRS = [(operation, mistake) for operation in sorted(LAYERS) for mistake in mistakes_of(operation)]


def assert_blames(
    error: errors.EngineError, kind: type[errors.EngineError], loc: tuple[str | int, ...]
) -> None:
    assert isinstance(error, kind), f"{error!r} is not a {kind.__name__}"
    locs = [issue.loc for issue in error.issues]
    assert any(found[: len(loc)] == loc for found in locs), f"{loc} is not blamed in {locs}"
    for issue in error.issues:
        assert issue.msg


@pytest.mark.parametrize(
    ("operation", "mistake"), PAIRS, ids=[f"{op}-{m.__name__}" for op, m in PAIRS]
)
@settings(max_examples=25)
@given(data=st.data())
def test_each_mistake_is_named(operation: str, mistake: Mistake, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    request = Request(layer, dict(layer.config), layer.given())
    kind, loc = mistake(data.draw, request)
    with pytest.raises(errors.EngineError) as caught:
        engine.forward(operation, request.config, **request.tensors)
    assert_blames(caught.value, kind, loc)


@pytest.mark.parametrize("operation", sorted(LAYERS))
@settings(max_examples=25)
@given(data=st.data())
def test_wrong_gradients_and_wants(operation: str, data: st.DataObject) -> None:
    layer = data.draw(LAYERS[operation])
    tensors = layer.given()
    dy = layer.dy(engine.forward(operation, layer.config, **tensors)["y"])
    tensors = {name: tensors[name] for name in layer.backward_names()}
    *head, tail = dy.shape
    for shape in ((*head, tail, 1), tuple(head), (*head, tail + 1), (head[0] + 1, *dy.shape[1:])):
        with pytest.raises(errors.ShapeMismatch) as caught:
            engine.backward(operation, layer.config, None, **tensors, dy=np.zeros(shape))
        assert caught.value.issues[0].loc[0] in ("dy", "x", "indices")
    cases: list[tuple[Any, tuple[str | int, ...]]] = [
        (["dz"], ("wants", 0)),
        (["dx", "dx_"], ("wants", 1)),
        (["dx", 3], ("wants", 1)),
        (["indices"], ("wants", 0)),
        ("dx", ("wants",)),
        ({"dx": 1}, ("wants",)),
        (7, ("wants",)),
    ]
    for wants, loc in cases:
        with pytest.raises(errors.InvalidValue) as refused:
            engine.backward(operation, layer.config, wants, **tensors, dy=dy)
        assert_blames(refused.value, errors.InvalidValue, loc)
    with pytest.raises(errors.MissingField) as missing:
        engine.backward(operation, layer.config, None, **tensors)
    assert_blames(missing.value, errors.MissingField, ("dy",))


def test_unknown_operations_and_actions() -> None:
    x = np.zeros((1, 1, 3))
    for name in ("convolution", "", "conv2d", "Conv", "__init__", "../conv"):
        with pytest.raises(errors.UnknownOperation):
            engine.forward(name, {}, x=x)
    specs = {"x": engine.TensorSpec((1, 1, 3), "float32")}
    for action in ("plan", "", "train", "Forward"):
        with pytest.raises(errors.UnknownAction):
            engine.prepare("avg_pool", action, {"kernel": 1}, specs)


def test_names_that_are_no_text_are_refused_as_unknown() -> None:
    x, specs = np.zeros((1, 1, 3)), {"x": engine.TensorSpec((1, 1, 3), "float32")}
    names: tuple[Any, ...] = (["conv"], {}, None, 3, np.ones(2))
    for named in names:
        with pytest.raises(errors.UnknownOperation) as caught:
            engine.forward(named, {}, x=x)
        assert_blames(caught.value, errors.UnknownOperation, ("operation",))
        with pytest.raises(errors.UnknownAction) as refused:
            engine.prepare("avg_pool", named, {"kernel": 1}, specs)
        assert_blames(refused.value, errors.UnknownAction, ("action",))
        with pytest.raises(errors.DtypeMismatch):
            engine.plan("avg_pool", {"kernel": 1}, {"x": (1, 1, 3)}, named)


@pytest.mark.parametrize(
    ("spec", "kind", "loc"),
    [
        (None, errors.InvalidValue, ("x",)),
        ("f4", errors.InvalidValue, ("x",)),
        (((1, 1, 5),), errors.InvalidValue, ("x",)),
        ((5, "float32"), errors.ShapeMismatch, ("x", "shape")),
        ((("1", 1, 5), "float32"), errors.ShapeMismatch, ("x", "shape", 0)),
        (((1, 1, 5.0), "float32"), errors.ShapeMismatch, ("x", "shape", 2)),
        (([1, True, 5], "float32"), errors.ShapeMismatch, ("x", "shape", 1)),
        (((True, 1, 5), "float32"), errors.ShapeMismatch, ("x", "shape", 0)),
        (((1, 1, [5]), "float32"), errors.ShapeMismatch, ("x", "shape", 2)),
        (((1, 1, 5), ["float32"]), errors.DtypeMismatch, ("x", "dtype")),
        (((1, 1, 5), np.float32), errors.DtypeMismatch, ("x", "dtype")),
    ],
)
def test_specs_of_another_form_are_refused(
    spec: Any, kind: type[errors.EngineError], loc: tuple[str | int, ...]
) -> None:
    # What equals a size that was answered before is no size for that.
    engine.prepare("avg_pool", "forward", {"kernel": 1}, {"x": ((1, 1, 5), "float32")})
    with pytest.raises(kind) as caught:
        engine.prepare("avg_pool", "forward", {"kernel": 1}, {"x": spec})
    assert_blames(caught.value, kind, loc)
    for specs in (None, [("x", spec)]):
        unmapped: Any = specs
        with pytest.raises(errors.InvalidValue) as refused:
            engine.prepare("avg_pool", "forward", {"kernel": 1}, unmapped)
        assert_blames(refused.value, errors.InvalidValue, ("specs",))


def test_specs_as_lists_and_of_numpys_types_mean_the_same() -> None:
    def call(spec: Any) -> Any:
        return engine.prepare("avg_pool", "forward", {"kernel": 1}, {"x": spec})[0]

    plain = call(((1, 1, 5), "float32"))
    for spec in (([1, 1, 5], "float32"), [[1, np.int64(1), 5], np.dtype("f4")]):
        assert call(spec) == plain
    for spelt in ("<f4", ">f4", "f4", "|f4", np.dtype(">f4")):
        assert call(((1, 1, 5), spelt)) == plain


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "f4", np.dtype("f4")])
def test_a_plan_takes_numpys_sizes_and_dtypes(dtype: Any) -> None:
    shapes = {"x": (1, 1, 5), "weight": [2, 1, 3]}
    numpys: Any = {name: [np.int64(size) for size in shape] for name, shape in shapes.items()}
    report = engine.plan("conv", {}, numpys, dtype).report()
    assert report == engine.plan("conv", {}, shapes).report()
    assert {type(size) for shape in report["shapes"].values() for size in shape} == {int}


class _Withheld:
    """Numbers that another library does not give out, as PyTorch's that require a gradient."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("detach them first")


@pytest.mark.parametrize("value", [[[1, 2], [3]], _Withheld()], ids=["ragged", "withheld"])
def test_what_is_no_array_is_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidValue) as caught:
        engine.forward("avg_pool", {"kernel": 1}, x=value)
    assert_blames(caught.value, errors.InvalidValue, ("x",))
    assert isinstance(value, list) or "detach them first" in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "config"),
    [
        ("max_pool", {"kernel": 1, "padding": 10**9}),
        ("adaptive_avg_pool", {"output_size": 2 * 10**9}),
    ],
)
def test_outputs_that_no_array_can_be_are_refused_even_without_samples(
    operation: str, config: dict[str, Any]
) -> None:
    with pytest.raises(errors.InvalidValue) as caught:
        engine.forward(operation, config, x=np.zeros((0, 1, 4, 4, 4)))
    assert caught.value.issues[0].loc == ("y", "shape")


def test_integers_are_planned_where_forward_takes_them() -> None:
    planned = engine.plan("max_pool", {"kernel": 2}, {"x": (1, 1, 4, 4)}, "uint8").report()
    assert planned["bytes"]["inputs"] == 16
    assert planned["bytes"]["outputs"] == 4 * 4
    shapes = {"x": (1, 1, 4), "weight": (1, 1, 2), "bias": (1,)}
    beside = engine.plan("conv", {}, shapes, "uint8").report()
    assert beside["bytes"]["inputs"] == 4 + (2 + 1) * 4
    assert beside["bytes"]["outputs"] == 3 * 4
    whole = engine.plan("conv", {}, shapes).report()
    assert {**beside, "bytes": None} == {**whole, "bytes": None}


def test_every_wrong_field_is_named_at_once() -> None:
    config = {"stride": 0, "dilation": "2", "paddding": 1, "groups": True}
    with pytest.raises(errors.InvalidRequest) as caught:
        engine.forward("conv", config, x=np.zeros((1, 1, 3)), weight=np.zeros((1, 1, 1)))
    found = {issue.loc for issue in caught.value.issues}
    assert found == {("config", name) for name in config}


@pytest.mark.parametrize(
    ("operation", "more"),
    [("conv", {}), ("conv_transpose", {}), ("max_pool", {}), ("max_pool", {"ceil_mode": True})],
)
def test_an_empty_output_says_the_least_size_that_has_one(
    operation: str, more: dict[str, Any]
) -> None:
    told = 0
    for kernel, stride, dilation, padding in product((1, 2, 3), (1, 2, 3), (1, 2), range(5)):
        config = more | {"stride": stride, "dilation": dilation, "padding": padding}
        given = {"weight": np.ones((1, 1, kernel))}
        if operation == "max_pool":
            config, given = config | {"kernel": kernel}, {}
        sizes = range(1, 10)
        fit = []
        for size in sizes:
            try:
                engine.forward(operation, config, x=np.ones((1, 1, size)), **given)
                fit.append(size)
            except errors.EmptyOutput as error:
                (issue,) = error.issues
                assert (issue.loc, issue.got) == (("x", "shape", 2), size)
                least = int(str(issue.expected).removeprefix("at least "))
                told += 1
                assert least > size
                engine.forward(operation, config, x=np.ones((1, 1, least)), **given)
                with pytest.raises(errors.EmptyOutput):
                    engine.forward(operation, config, x=np.ones((1, 1, least - 1)), **given)
        assert fit == list(sizes)[len(sizes) - len(fit) :]
    assert told


@pytest.mark.parametrize("padding", [0, 2, [[1, 4]], "same", "same_lower", "full"])
def test_an_output_size_out_of_reach_is_told_those_within(padding: Any) -> None:
    for stride, dilation, kernel, count in product((1, 3), (1, 2), (1, 3, 4), (1, 2)):
        tensors = {"x": np.ones((1, 1, count)), "weight": np.ones((1, 1, kernel))}
        config = {"stride": stride, "dilation": dilation, "padding": padding}
        reached, ranges = [], set()
        for size in range(1, 16):
            try:
                engine.forward("conv_transpose", config | {"output_size": size}, **tensors)
                reached.append(size)
            except errors.InvalidValue as error:
                (issue,) = error.issues
                assert (issue.loc, issue.got) == (("config", "output_size", 0), size)
                ranges.add(issue.expected)
            except errors.EmptyOutput as error:
                (issue,) = error.issues
                assert (issue.loc, issue.got) == (("x", "shape", 2), count)
                assert int(str(issue.expected).removeprefix("at least ")) > count
                ranges.add(None)
        expected = f"{reached[0]} to {reached[-1]} on axis 0" if reached else None
        assert ranges == {expected}


@pytest.mark.parametrize("padding", [0, 1, [[0, 2]]])
@pytest.mark.parametrize(("stride", "dilation"), [(3, 1), (1, 3), (2, 3)])
def test_an_output_size_agrees_with_an_output_padding_that_is_given(
    padding: Any, stride: int, dilation: int
) -> None:
    tensors = {"x": np.arange(4.0).reshape(1, 1, 4), "weight": np.arange(1.0, 5).reshape(1, 1, 4)}
    config = {"stride": stride, "dilation": dilation, "padding": padding}
    made = [
        engine.forward("conv_transpose", config | {"output_padding": n}, **tensors)["y"]
        for n in range(3)
    ]
    for extra, meant in product(range(3), range(3)):
        both = config | {"output_padding": extra, "output_size": made[meant].shape[2]}
        if extra in (0, meant):
            y = engine.forward("conv_transpose", both, **tensors)["y"]
            np.testing.assert_array_equal(y, made[meant])
            continue
        with pytest.raises(errors.InvalidValue) as caught:
            engine.forward("conv_transpose", both, **tensors)
        (issue,) = caught.value.issues
        assert (issue.loc, issue.got) == (("config", "output_padding", 0), extra)
        assert str(issue.expected).startswith(f"{meant} ")


@pytest.mark.parametrize(
    ("padding", "size", "extra", "blamed"),
    [
        (0, [8, 9], [0, 1], None),
        (0, [8, 9], [1, 1], 0),
        (0, [9, 8], 1, 1),
        # With padding `same` the size settles the padding, as far as there is something to cut off.
        ("same", 7, 1, None),
        ("same", 10, 2, None),
        ("same", 10, 0, None),
        ("same", 10, 1, 0),
    ],
)
def test_an_output_padding_agrees_with_output_size_along_every_axis(
    padding: Any, size: Any, extra: Any, blamed: int | None
) -> None:
    tensors = {"x": np.ones((1, 1, 3, 3)), "weight": np.ones((1, 1, 2, 2))}
    config = {"stride": 3, "padding": padding, "output_size": size, "output_padding": extra}
    if blamed is None:
        y = engine.forward("conv_transpose", config, **tensors)["y"]
        assert list(y.shape[2:]) == (size if isinstance(size, list) else [size, size])
        return
    with pytest.raises(errors.InvalidValue) as caught:
        engine.forward("conv_transpose", config, **tensors)
    assert_blames(caught.value, errors.InvalidValue, ("config", "output_padding", blamed))


INPUT_SHAPE = ("config", "input_shape")


@pytest.mark.parametrize(
    ("config", "kind", "loc", "expected"),
    [
        ({}, errors.MissingField, INPUT_SHAPE, "the shape of x"),
        ({"input_shape": [2, 3, 6]}, errors.ShapeMismatch, INPUT_SHAPE, "4 entries"),
        ({"input_shape": [2, 3, 0, 4]}, errors.ShapeMismatch, INPUT_SHAPE, "at least 1"),
        ({"input_shape": [3, 3, 6, 4]}, errors.ShapeMismatch, (*INPUT_SHAPE, 0), "2"),
        ({"input_shape": [2, 4, 6, 4]}, errors.ShapeMismatch, ("indices", "shape"), "[2, 4, 3, 2]"),
        (
            {"input_shape": [2, 3, 6, 4], "ties": "all"},
            errors.InvalidValue,
            ("config", "ties"),
            "first, or x",
        ),
        ({"input_shape": [2, 3, 5, 5]}, errors.ShapeMismatch, INPUT_SHAPE, "[2, 3, 6, 4]"),
        (
            {"input_shape": [2, 3, 6, 4]},
            errors.InvalidIndices,
            ("indices", "data", 1, 2, 0, 1),
            "-1 (none) or 0 to 23",
        ),
    ],
)
def test_what_is_wrong_where_indices_stand_for_x(
    config: dict[str, Any],
    kind: type[errors.EngineError],
    loc: tuple[str | int, ...],
    expected: str,
) -> None:
    given: dict[str, np.ndarray] = {
        "indices": np.zeros((2, 3, 3, 2), np.int64),
        "dy": np.ones((2, 3, 3, 2)),
    }
    if expected == "[2, 3, 6, 4]":
        given["x"] = np.ones((2, 3, 6, 4))
    if kind is errors.InvalidIndices:
        given["indices"][1, 2, 0, 1] = 24
    with pytest.raises(kind) as caught:
        engine.backward("max_pool", {"kernel": 2} | config, None, **given)
    assert [(issue.loc, issue.expected) for issue in caught.value.issues] == [(loc, expected)]


def blamed(operation: str, config: Any, **tensors: Any) -> list[errors.Issue]:
    with pytest.raises(errors.EngineError) as caught:
        engine.forward(operation, config, **tensors)
    return list(caught.value.issues)


@pytest.mark.parametrize("operation", ["conv", "conv_transpose"])
def test_an_x_without_samples_may_be_what_is_wrong(operation: str) -> None:
    x, weight = np.ones((3, 8, 8)), np.ones((3, 3, 3, 3))
    (issue,) = blamed(operation, {}, x=x, weight=weight)
    assert issue.loc == ("weight", "shape")
    assert issue.expected == (
        "3 axes, as x has (samples, channels, 1 spatial);"
        " or an x with 4, if its axis of samples was left out"
    )
    (issue,) = blamed(operation, {}, x=x[None], weight=weight[0])
    assert issue.expected == "4 axes, as x has (samples, channels, 2 spatial)"


def test_axes_of_x_are_told_by_their_meaning() -> None:
    (issue,) = blamed("max_pool", {"kernel": 2}, x=np.ones((4, 4)))
    assert issue.expected == "3 to 5 axes (samples, channels, 1 to 3 spatial)"
    (issue,) = blamed("activation", {"name": "relu"}, x=np.ones(()))
    assert issue.expected == "1 to 8 axes"


@pytest.mark.parametrize("names", [("x", "weight"), ("weight", "x")])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("int8", "float32, which an integer x becomes"), ("float32", "float32, as x has")],
)
def test_what_dtype_others_have_follows_from_x(
    names: tuple[str, str], dtype: str, expected: str
) -> None:
    given = {"x": np.ones((1, 1, 3), dtype), "weight": np.ones((1, 1, 1))}
    (issue,) = blamed("conv", {}, **{name: given[name] for name in names})
    assert (issue.loc, issue.got) == (("weight", "dtype"), "float64")
    assert issue.expected == expected


def test_an_empty_list_of_wants_is_called_empty() -> None:
    with pytest.raises(errors.InvalidValue) as caught:
        engine.backward("max_pool", {"kernel": 1}, [], x=np.ones((1, 1, 1)), dy=np.ones((1, 1, 1)))
    (issue,) = caught.value.issues
    assert (issue.msg, issue.expected) == ("the list is empty", "a list out of y, dx")


@pytest.mark.parametrize(
    ("operation", "field", "expected"),
    [
        ("max_pool", "kernel", "an integer or a list of one per spatial axis"),
        ("max_unpool", "output_size", "an integer or a list of one per spatial axis"),
        (
            "adaptive_avg_pool",
            "output_size",
            "an integer or a list of one per spatial axis or null",
        ),
    ],
)
def test_a_field_that_is_missing_is_told_by_what_it_takes(
    operation: str, field: str, expected: str
) -> None:
    given = {"x": np.ones((1, 1, 3))}
    if operation == "max_unpool":
        given["indices"] = np.zeros((1, 1, 3), np.int64)
    (issue,) = blamed(operation, {}, **given)
    assert (issue.loc, issue.expected) == (("config", field), expected)


def test_keys_beside_a_missing_name_are_named_too() -> None:
    name, key = blamed("activation", {"activation": "relu"}, x=np.ones((1, 1)))
    assert (name.loc, name.msg) == (("config", "name"), "required")
    assert (key.loc, key.msg) == (
        ("config", "activation"),
        "no such field; did you mean name?",
    )
    assert len(blamed("activation", {"alpha": 1}, x=np.ones((1, 1)))) == 1


def fields(operation: str) -> list[str]:
    """Every config field of an operation; an activation's parameters count as fields."""
    if operation == "activation":
        return ["name", "alpha", "beta", "slope", "intercept", "approximate"]
    return sorted(engine.operations()[operation]["config"]["properties"])


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.integers(-2, 5),
        st.floats(),
        st.sampled_from(["same", "valid", "full", "causal", "zero", "all", "NHWC", "relu", "mean"]),
        st.text(max_size=4),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("operation", sorted(LAYERS))
@given(data=st.data())
def test_any_config_is_planned_or_refused(operation: str, data: st.DataObject) -> None:
    """Whatever plain values the config's fields have: a plan or a named error, and no allocation.

    The sizes may be astronomical, so that anything allocated or counted through would be noticed.
    """
    config = data.draw(st.dictionaries(st.sampled_from(fields(operation)), PLAIN, max_size=4))
    axis = st.one_of(st.integers(-1, 9), st.sampled_from([2**31 - 1, 2**31, 2**63]))
    shape = st.lists(axis, max_size=6)
    names = ["x", *(["weight", "bias"] if operation.startswith("conv") else [])]
    names += ["indices"] if operation == "max_unpool" else []
    shapes = {name: data.draw(shape) for name in names}
    report = planned_or_refused(operation, config, shapes)
    if isinstance(report, errors.EngineError):
        assert all(issue.loc and issue.msg for issue in report.issues)
    else:
        assert all(n >= 0 for shape in report["shapes"].values() for n in shape)
        assert report["flops"]["forward"] >= 0


def planned_or_refused(
    operation: str, config: dict[str, Any], shapes: Any, dtype: str = "float32"
) -> dict[str, Any] | errors.EngineError:
    """The plan's report, or the error in its place."""
    try:
        return engine.plan(operation, config, shapes, dtype).report()
    except errors.EngineError as error:
        return error


@pytest.mark.parametrize("operation", sorted(LAYERS))
@given(data=st.data())
def test_legal_layers_with_one_field_replaced(operation: str, data: st.DataObject) -> None:
    """A legal layer with any small value in one field gives an answer of the planned shape, or a
    named error about the config or a shape."""
    layer = data.draw(LAYERS[operation])
    small = st.one_of(
        st.none(),
        st.integers(-1, 4),
        st.lists(st.integers(-1, 4), min_size=1, max_size=3),
        st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=1, max_size=3),
        st.sampled_from(["same", "valid", "full", "causal", "zero", "all", "reflect", "circular"]),
        st.booleans(),
    )
    config = layer.config | {data.draw(st.sampled_from(fields(operation))): data.draw(small)}
    shapes = {name: list(shape) for name, shape in layer.shapes.items()}
    report = planned_or_refused(operation, config, shapes, "float64")
    tensors = layer.given()
    if "indices" in tensors:
        tensors["indices"][:] = -1
    if isinstance(report, errors.EngineError):
        with pytest.raises(type(report)) as caught:
            engine.forward(operation, config, **tensors)
        assert caught.value.issues == report.issues
    else:
        got = engine.forward(operation, config, **tensors)
        assert list(got["y"].shape) == report["shapes"]["y"]


def test_deep_nesting_is_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(errors.InvalidValue, match="expected at most 4 levels"):
        engine.plan("conv", {"stride": deep}, {"x": [1, 1, 3], "weight": [1, 1, 1]})


def test_a_tensor_that_is_none_was_not_given() -> None:
    x, weight = np.ones((1, 1, 3)), np.ones((1, 1, 2))
    y = engine.forward("conv", {}, x=x, weight=weight, bias=None)["y"]
    np.testing.assert_array_equal(y, [[[2, 2]]])
    gradients = engine.backward("conv", {}, wants=None, x=x, weight=weight, bias=None, dy=y)
    assert sorted(gradients) == ["dweight", "dx"]
    with pytest.raises(errors.MissingField, match=r"^x: required"):
        engine.forward("conv", {}, x=None, weight=weight)
    with pytest.raises(errors.MissingField, match=r"^weight: required"):
        engine.forward("conv", {}, x=x, weight=None)
    with pytest.raises(errors.UnknownField, match="no such tensor here"):
        engine.forward("conv", {}, x=x, weight=weight, kernel=None)


def test_the_dtypes_that_are_told_are_those_that_are_accepted() -> None:
    good = {"x": np.ones((1, 1, 2), np.float32), "weight": np.ones((1, 1, 1), np.float32)}
    for name in good:
        with pytest.raises(errors.DtypeMismatch) as caught:
            engine.forward("conv", {}, **good | {name: good[name].astype(np.uint16)})
        (issue,) = caught.value.issues
        assert issue.loc == (name, "dtype")
        assert issue.expected is not None
        told = set(issue.expected.split(", "))
        assert ("int64" in told) == (name == "x")
        for dtype in told:
            given = {
                key: array.astype(dtype if key == name or dtype.startswith("float") else "float32")
                for key, array in good.items()
            }
            assert engine.forward("conv", {}, **given)["y"].shape == (1, 1, 2)
