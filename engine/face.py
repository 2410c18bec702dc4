"""The public functions: one request at a time, arrays in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.calls import Call
from engine.errors import DtypeMismatch, InvalidValue, ShapeMismatch, fail
from engine.execute import run, split
from engine.operation import describe_tensors
from engine.options import read_integer
from engine.plans import Action, Plan, TensorSpec
from engine.registry import ALIASES, find, table
from engine.resolve import FLOATS, INTEGERS, dtype_name, full_name, prepare

Array = NDArray[Any]


def forward(
    operation: str, config: Mapping[str, Any] | None = None, **tensors: ArrayLike | None
) -> dict[str, Array]:
    """Compute a layer's output.

    Args:
        operation: a name out of `operations()`, for example ``"conv"``.
        config: the layer's fields; those left out have their defaults.
        tensors: ``x`` and, for convolutions, ``weight`` and maybe ``bias``; ``indices`` for
            max_unpool. Shapes as the config's layouts say, samples first. None is as good as left out.

    Returns:
        ``y``, and ``indices`` where asked for. The dtype is that of the floating inputs.

    Raises:
        EngineError: naming each field that is wrong, what was expected and what was found.
    """
    return _compute(operation, "forward", config, None, tensors)


def backward(
    operation: str,
    config: Mapping[str, Any] | None = None,
    wants: Sequence[str] | None = None,
    **tensors: ArrayLike | None,
) -> dict[str, Array]:
    """Compute a layer's gradients from ``dy``, the gradient of the loss with respect to its output.

    Args:
        operation, config: as for `forward`.
        wants: out of ``y``, ``dx``, ``dweight``, ``dbias``; by default every gradient of what is given.
        tensors: those of `forward`, and ``dy`` with the shape of ``y``.

    Returns:
        The gradients, each with the shape of the tensor it belongs to.

    Raises:
        EngineError: naming each field that is wrong.
    """
    return _compute(operation, "backward", config, wants, tensors)


def _compute(
    operation: str,
    action: Action,
    config: Mapping[str, Any] | None,
    wants: Sequence[str] | None,
    tensors: Mapping[str, ArrayLike | None],
) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    specs: dict[str, tuple[tuple[int, ...], str]] = {}
    for name, value in tensors.items():
        if value is None and name in find(operation).inputs(action):
            continue
        array = arrays[name] = _array(name, value)
        specs[name] = array.shape, dtype_name(array.dtype)
    call, samples = prepare(operation, action, config, specs, wants)
    rows = (samples,)
    outputs = run(call, arrays, rows)
    # What forward makes belongs to samples, and one request has them all.
    return outputs if action == "forward" else split(outputs, rows)[0]


def _array(name: str, value: ArrayLike | None) -> Array:
    """The array that NumPy makes of a value."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        # Lists of unequal lengths, and arrays of other libraries that do not give out their numbers.
        expected, got = "an array or nested lists of numbers", type(value).__name__
        raise fail(InvalidValue, (name,), f"not an array: {error}", expected, got) from error


@dataclass(frozen=True)
class Planned:
    """A plan for a number of samples."""

    plan: Plan
    call: Call
    samples: int

    def report(self) -> dict[str, Any]:
        """Shapes, padding, receptive field, cost and algorithm, as plain values."""
        cost = self.call.cost(self.samples)
        given = [name for name, _ in self.call.given]
        gradients = find(self.plan.operation).gradients(given)
        names = (*given, *self.call.wants, "dy", *gradients)
        return {
            "shapes": {name: list(self.plan.shape(name, self.samples)) for name in names},
            "padding": [list(pair) for pair in self.plan.padding],
            "receptive_field": list(self.plan.receptive_field),
            "flops": {
                "forward": self.plan.flops[0] * self.samples,
                "backward": self.plan.flops[1] * self.samples,
            },
            "bytes": {
                "inputs": cost.input_bytes,
                "outputs": cost.output_bytes,
                "workspace": cost.workspace_bytes,
            },
            "algorithm": self.plan.algorithm,
        }


def plan(
    operation: str,
    config: Mapping[str, Any] | None,
    shapes: Mapping[str, Sequence[int]],
    dtype: str | np.dtype[Any] = "float32",
) -> Planned:
    """Work out a layer's shapes and cost without computing or allocating anything.

    Args:
        operation, config: as for `forward`.
        shapes: the shape of each tensor that `forward` would get.
        dtype: of all tensors but `indices`; one of integers is that of `x`, beside float32.

    Returns:
        The shape of every tensor, gradients included, paddings, receptive field, FLOPs and bytes; its
        `report()` has them as a plain map.

    Raises:
        EngineError: the one that `forward` would raise.
    """
    common = full_name(dtype)
    if not isinstance(common, str) or common not in FLOATS + INTEGERS:
        accepted = ", ".join(FLOATS + INTEGERS)
        raise fail(DtypeMismatch, ("dtype",), "not accepted here", accepted, dtype)
    if not isinstance(shapes, Mapping):
        raise fail(InvalidValue, ("shapes",), "not a map", "tensor name to shape", shapes)
    dtypes = {"x": common, "indices": "int64"}
    others = common if common in FLOATS else "float32"
    specs = {}
    for name, shape in shapes.items():
        if not isinstance(shape, list | tuple):
            loc = ("shapes", name)
            raise fail(ShapeMismatch, loc, "not a shape", "a list of integers", shape)
        plain = (size.item() if isinstance(size, np.integer) else size for size in shape)
        sizes = (read_integer(s, ("shapes", name, i), 0) for i, s in enumerate(plain))
        specs[name] = TensorSpec(tuple(sizes), dtypes.get(name, others))
    call, samples = prepare(operation, "forward", config, specs)
    return Planned(call.plan, call, samples)


def operations() -> dict[str, Any]:
    """The catalogue: for each operation its tensors, its config's JSON Schema, and examples."""
    names = {target: alias for alias, target in ALIASES.items()}
    return {
        name: {
            "summary": operation.summary,
            **({"alias": names[name]} if name in names else {}),
            "tensors": describe_tensors(operation),
            "config": operation.schema(),
            "algorithms": list(operation.algorithms),
            "examples": [dict(example) for example in operation.examples],
        }
        for name, operation in table().items()
    }
