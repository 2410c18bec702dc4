"""Where the tensors of a task lie, as server and worker both see it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app.jobs import Job
from app.workers import layouts
from app.workers.arena import ALIGNMENT
from app.workers.layouts import Layouts
from app.workers.task import Task
from tests.app.dispatching import job


def task(given: Job, requests: int = 1) -> Task:
    tensors, rows = [given.tensors] * requests, [given.samples] * requests
    return Task(given.call, {"stride": [1]}, given.specs, None, tensors, rows)


@pytest.mark.parametrize("action", ["forward", "backward"])
def test_the_worker_reads_what_the_server_means(action: str) -> None:
    given = task(job(action=action, samples=3), requests=2)
    layout = Layouts().of(given)
    errand = layouts.read(layout.text)
    assert errand.call == given.call
    assert errand.rows == [3, 3]
    for ours, theirs in ((layout.inputs, errand.inputs), (layout.outputs, errand.outputs)):
        assert [(r.name, r.dtype, r.shape, r.offset) for r in ours] == [
            (r.name, r.dtype, tuple(r.shape), r.offset) for r in theirs
        ]
    assert json.loads(json.loads(layout.text)["plan"])["config"] == {"stride": [1]}


def test_tensors_lie_apart_and_aligned() -> None:
    layout = Layouts().of(task(job(action="backward", width=40), requests=3))
    shapes = {region.name: region.shape for region in (*layout.inputs, *layout.outputs)}
    assert shapes["x"] == shapes["dx"] == (3, 1, 40)
    assert shapes["dweight"] == (3, 1, 1, 3), "a gradient for each request"
    for regions, nbytes in (
        (layout.inputs, layout.input_bytes),
        (layout.outputs, layout.output_bytes),
    ):
        end = 0
        for region in regions:
            assert region.offset == end
            size = np.dtype(region.dtype).itemsize * int(np.prod(region.shape))
            end += -(-size // ALIGNMENT) * ALIGNMENT
        assert nbytes == end


def test_tasks_of_a_kind_share_a_layout_and_no_others_do() -> None:
    known, given = Layouts(), job(seed=1)
    layout = known.of(task(given))
    assert known.of(task(job(seed=2))) is layout
    others = [
        known.of(task(job(samples=2))),
        known.of(task(given, requests=2)),
        known.of(task(job(width=9))),
        known.of(task(job(action="backward"))),
        known.of(task(given), ["x"]),
    ]
    assert len({each.text for each in (layout, *others)}) == 1 + len(others)
    assert [region.name for region in others[4].inputs] == ["weight"]


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MOST", 3)
    known = Layouts()
    for width in range(4, 20):
        known.of(task(job(width=width)))
        assert len(known._known) <= 3
