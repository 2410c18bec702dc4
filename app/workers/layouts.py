"""How a task's tensors lie in an arena, and the text that tells a worker: alike for all tasks of a kind.

Offsets are counted from where the task's inputs begin, and its outputs, so that a text says nothing of
where in the arena they are. The server keeps its texts, and a worker what it made of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import engine
from app.workers.arena import Region, place
from app.workers.task import Task

MOST = 1024
"""Layouts that the server keeps, and texts, and calls, that a worker does."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tensors of a task lie.

    Attributes:
        inputs, outputs: regions, each counted from where the first of them begins.
        input_bytes, output_bytes: from there to the end of the last.
        text: from which a worker learns it, and what to compute; see `read`.
    """

    inputs: Sequence[Region]
    outputs: Sequence[Region]
    input_bytes: int
    output_bytes: int
    text: str


@dataclass(frozen=True, slots=True)
class Errand:
    """What a worker is to compute, and where its tensors lie; see `Layout`."""

    call: engine.Call
    rows: Sequence[int]
    inputs: Sequence[Region]
    outputs: Sequence[Region]


class Layouts:
    """Those of the last kinds of task."""

    def __init__(self) -> None:
        self._known: dict[object, Layout] = {}

    def of(self, task: Task, elsewhere: Collection[str] = ()) -> Layout:
        """The layout of a task, of whose inputs some lie elsewhere than in the arena."""
        kind = task.call, tuple(task.rows), tuple(elsewhere)
        layout = self._known.get(kind)
        if layout is None:
            if len(self._known) >= MOST:
                self._known.clear()
            layout = self._known[kind] = _layout(task, elsewhere)
        return layout


def _layout(task: Task, elsewhere: Collection[str]) -> Layout:
    inputs, input_bytes = place([each for each in task.joined() if each[0] not in elsewhere], 0)
    wanted = task.call.outputs(task.rows).items()
    outputs, output_bytes = place([(name, spec.dtype, spec.shape) for name, spec in wanted], 0)
    return Layout(inputs, outputs, input_bytes, output_bytes, _text(task, inputs, outputs))


def _text(task: Task, inputs: Sequence[Region], outputs: Sequence[Region]) -> str:
    plan = {
        "operation": task.call.operation,
        "action": task.call.action,
        "config": task.config,
        "specs": {name: (spec.shape, spec.dtype) for name, spec in task.specs.items()},
        "wants": task.wants,
    }
    # The plan as a string of its own, by which the call is found that other rows have, too.
    told = {"plan": json.dumps(plan), "rows": task.rows, "inputs": inputs, "outputs": outputs}
    return json.dumps(told)


@lru_cache(MOST)
def read(text: str) -> Errand:
    """What a layout's text says."""
    told = json.loads(text)
    inputs, outputs = (list(map(Region.of, told[key])) for key in ("inputs", "outputs"))
    return Errand(_prepared(told["plan"]), told["rows"], inputs, outputs)


@lru_cache(MOST)
def _prepared(plan: str) -> engine.Call:
    """The call that the server has, made again from what it was made from."""
    given = json.loads(plan)
    specs = {name: engine.TensorSpec(tuple(s), d) for name, (s, d) in given["specs"].items()}
    call, _ = engine.prepare(
        given["operation"], given["action"], given["config"], specs, given["wants"]
    )
    return call
