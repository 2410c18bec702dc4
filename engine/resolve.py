"""From names, dtypes and shapes to a call: all is decided here, and nothing large allocated."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from engine.calls import Call
from engine.errors import (
    DtypeMismatch,
    InvalidValue,
    Loc,
    MissingField,
    ShapeMismatch,
    UnknownAction,
    UnknownField,
    fail,
    merged,
)
from engine.operation import Operation, require_shape
from engine.options import unknown_fields
from engine.plans import ACTIONS, PER_SAMPLE, Action, Plan, TensorSpec
from engine.registry import find
from engine.words import did_you_mean, one_of

FLOATS = ("float16", "float32", "float64")
DEEPEST = 6
"""Levels of nesting in a config; no field has more than three."""

PLAIN = frozenset((int, str, bool, float, type(None)))
"""Types whose values are their own stand-ins."""

MOST_NUMBERS = sys.maxsize // 8
"""Of eight bytes each, in one tensor."""

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


_NAMES = {np.dtype(name): name for name in (*FLOATS, *INTEGERS)}


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The dtype's canonical name, which NumPy works out anew each time it is asked."""
    return _NAMES.get(dtype) or dtype.name


SPELT = {order + dtype.str[1:]: name for dtype, name in _NAMES.items() for order in "<>|"}
SPELT |= {spelling[1:]: name for spelling, name in SPELT.items()}
SPELT |= {name: name for name in _NAMES.values()}
"""Every spelling of a dtype's name → the canonical one."""


def full_name(dtype: object) -> object:
    """The canonical name of a dtype, or of a short form of one, as <f4; anything else as it is."""
    if isinstance(dtype, np.dtype):
        return dtype_name(dtype)
    return SPELT.get(dtype, dtype) if isinstance(dtype, str) else dtype


def prepare(
    operation: str,
    action: str,
    config: Mapping[str, Any] | None,
    specs: Mapping[str, tuple[Sequence[int], str]],
    wants: Sequence[str] | None = None,
) -> tuple[Call, int]:
    """Resolve a request from its config and its tensors' specs, each a shape and the name of a dtype.

    Returns:
        The call, which is equal for requests that may share a batch, and the number of samples.

    Raises:
        EngineError: naming every field that is wrong. Nothing large has been allocated.
    """
    layer = find(operation)
    if not isinstance(action, str) or action not in ACTIONS:
        msg = f"no such action{did_you_mean(action, ACTIONS)}"
        raise fail(UnknownAction, ("action",), msg, " or ".join(ACTIONS), action)
    settled, wanted = _freeze(config, ("config",)), _freeze(wants, ("wants",))
    return _prepared(layer, action, settled, _key(specs), wanted)


def _key(specs: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Tensors' specs as they hash; they are looked at where they are new."""
    if type(specs) is not dict and not isinstance(specs, Mapping):
        expected = "a map from a tensor's name to its shape and dtype"
        raise fail(InvalidValue, ("specs",), "not a map", expected, type(specs).__name__)
    key = tuple(specs.items())
    try:
        hash(key)
        # 1, 1.0 and true are equal: one would be answered as another was.
        plain = all(type(size) is int for _, (shape, _) in key for size in shape)
    except (TypeError, ValueError):
        plain = False  # a shape may be a list
    return key if plain else tuple((name, _read_spec(name, spec)) for name, spec in key)


def _read_spec(name: str, spec: Any) -> TensorSpec:
    """A spec of integers and the name of a dtype."""
    if not isinstance(spec, list | tuple) or len(spec) != 2:
        raise fail(InvalidValue, (name,), "not a spec", "a shape and the name of a dtype", spec)
    shape, dtype = spec
    if not isinstance(shape, list | tuple):
        loc: Loc = (name, "shape")
        raise fail(ShapeMismatch, loc, "not a shape", "a list of integers", shape)
    for axis, size in enumerate(shape):
        if not isinstance(size, int | np.integer) or isinstance(size, bool):
            loc = (name, "shape", axis)
            raise fail(ShapeMismatch, loc, "not a size", "an integer", size)
    dtype = full_name(dtype)
    if not isinstance(dtype, str):
        loc, expected = (name, "dtype"), ", ".join(FLOATS)
        raise fail(DtypeMismatch, loc, "not the name of a dtype", expected, dtype)
    return TensorSpec(tuple([int(size) for size in shape]), dtype)


def _freeze(value: Any, loc: Loc) -> Any:
    """A hashable stand-in for a plain value that keeps 1, 1.0 and true apart."""
    if type(value) in PLAIN:
        return (type(value), value)
    if isinstance(value, np.generic):
        value = value.item()
    # A dictionary is known at once; asking for any other mapping takes a microsecond.
    if (type(value) is dict or isinstance(value, Mapping)) and len(loc) < DEEPEST:
        return (
            "map",
            tuple(
                [
                    # A call for each entry would take twice as long.
                    (key, (type(entry), entry))
                    if type(key) is str and type(entry) in PLAIN
                    else (str(key), _freeze(entry, (*loc, str(key))))
                    for key, entry in value.items()
                ]
            ),
        )
    if isinstance(value, list | tuple) and len(loc) < DEEPEST:
        return ("list", tuple(_freeze(entry, (*loc, i)) for i, entry in enumerate(value)))
    if isinstance(value, Mapping | list | tuple):
        expected = f"at most {DEEPEST - 2} levels of lists and maps in a field"
        raise fail(InvalidValue, loc, "nests too deeply", expected, type(value).__name__)
    if value is not None and not isinstance(value, str | int | float):
        expected = "a plain value: null, boolean, number, text, list or map"
        raise fail(InvalidValue, loc, "not a value for a config", expected, type(value).__name__)
    return (type(value), value)


def _thaw(value: Any) -> Any:
    kind, content = value
    if kind == "map":
        return {key: _thaw(entry) for key, entry in content}
    if kind == "list":
        return [_thaw(entry) for entry in content]
    return content


@lru_cache(maxsize=1024)
def _prepared(
    operation: Operation, action: Action, config: Any, key: tuple[tuple[str, Any], ...], wants: Any
) -> tuple[Call, int]:
    specs = {name: _read_spec(name, spec) for name, spec in key}
    _check_names(operation.inputs(action), specs)
    plan, samples = resolve(operation, _thaw(config), specs)
    call = Call(
        operation=operation.name,
        action=action,
        wants=_wants(operation, plan, action, tuple(specs), _thaw(wants)),
        plan=plan,
        given=tuple((name, spec.dtype) for name, spec in sorted(specs.items())),
    )
    return call, samples


def resolve(operation: Operation, config: Any, specs: Mapping[str, TensorSpec]) -> tuple[Plan, int]:
    """The plan and the number of samples; the names of the tensors have been checked."""
    dtype = _common_dtype(specs)
    shapes = {name: spec.shape for name, spec in specs.items()}
    leading = operation.leading(shapes, config)
    if leading not in specs:
        raise fail(MissingField, (leading,), "required", "a tensor", None)
    low, high = operation.ranks()
    rank = len(shapes[leading])
    if not low <= rank <= high:
        meant = " (samples, channels, 1 to 3 spatial)" if low == 3 else ""
        expected, got = f"{low} to {high} axes{meant}", list(shapes[leading])
        raise fail(ShapeMismatch, (leading, "shape"), "wrong rank", expected, got)
    _check_sizes(shapes)
    settled = operation.read_config(config, rank - 2)
    tails = {name: shape[1:] if name in PER_SAMPLE else shape for name, shape in shapes.items()}
    plan = operation.plan(settled, tails, dtype)
    _check_addresses(plan)
    samples = shapes[leading][0]
    operation.check_samples(settled, samples)
    for name, shape in shapes.items():
        require_shape(name, shape, plan.shape(name, samples))
    return plan, samples


def _check_names(inputs: Mapping[str, bool], specs: Mapping[str, TensorSpec]) -> None:
    errors = unknown_fields(specs, inputs, (), "no such tensor here")
    errors += [
        fail(MissingField, (name,), "required", "a tensor", None)
        for name, required in inputs.items()
        if required and name not in specs
    ]
    if errors:
        raise merged(errors)


def _check_sizes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        for axis, size in enumerate(shape):
            if size < 1 and not (axis == 0 and name in PER_SAMPLE and size == 0):
                loc = (name, "shape", axis)
                raise fail(ShapeMismatch, loc, "an axis is empty", "at least 1", size)


def _check_addresses(plan: Plan) -> None:
    """Not even without samples is there an array of more bytes than there are addresses."""
    for name, tail in plan.tails:
        if prod(tail) > MOST_NUMBERS:
            expected = f"at most {MOST_NUMBERS} numbers for a sample"
            raise fail(
                InvalidValue, (name, "shape"), "no tensor can be as large", expected, list(tail)
            )


def _common_dtype(specs: Mapping[str, TensorSpec]) -> str:
    """The dtype of the result: the one that all floating tensors have; integer x counts as float32."""
    first: tuple[str, str] | None = None
    # The dtype of x comes first: what others are to have follows from it.
    for name in sorted(specs, key=lambda name: name != "x"):
        dtype = specs[name].dtype
        if name == "indices":
            if dtype not in INTEGERS:
                expected = "int64"
                raise fail(DtypeMismatch, (name, "dtype"), "not integers", expected, dtype)
            continue
        if dtype in INTEGERS and name == "x":
            dtype = "float32"
        if dtype not in FLOATS:
            loc, accepted = (name, "dtype"), FLOATS + INTEGERS if name == "x" else FLOATS
            raise fail(DtypeMismatch, loc, "not accepted here", ", ".join(accepted), dtype)
        if first is None:
            first = name, dtype
        elif dtype != first[1]:
            becomes = specs[first[0]].dtype != first[1]
            why = "which an integer x becomes" if becomes else f"as {first[0]} has"
            expected = f"{first[1]}, {why}"
            raise fail(DtypeMismatch, (name, "dtype"), "dtypes differ", expected, dtype)
    return first[1] if first else "float32"


def _wants(
    operation: Operation, plan: Plan, action: Action, given: Sequence[str], wants: Any
) -> tuple[str, ...]:
    if action == "forward":
        if wants is not None:
            raise fail(UnknownField, ("wants",), "only backward has it", "nothing", wants)
        return operation.forward_outputs(plan)
    allowed = operation.wantable(given)
    if wants is None:
        return operation.gradients(given)
    if not isinstance(wants, list) or not wants:
        msg = "the list is empty" if wants == [] else "not a list of names"
        raise fail(InvalidValue, ("wants",), msg, f"a list out of {', '.join(allowed)}", wants)
    for place, name in enumerate(wants):
        if name not in allowed:
            msg = f"cannot be given here{did_you_mean(name, allowed)}"
            raise fail(InvalidValue, ("wants", place), msg, one_of(allowed), name)
    return tuple(name for name in allowed if name in wants)
