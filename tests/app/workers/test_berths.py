"""Places for large bodies: found again by their tensors, free again by themselves, and never mixed up."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import engine
from app.jobs import Answer
from app.workers import berths as module
from app.workers.arena import ALIGNMENT, MappedFile
from app.workers.berths import BODY_BYTES, Berths
from app.workers.memory import KEEP_S, KEPT_BYTES
from app.workers.process import ProcessOptions, ProcessWorker
from app.workers.task import ComputeFailed, Result, Task
from tests.app.dispatching import encode, scenario

HEAD = 37
"""Bytes before the tensor's data, an odd number, as in real bodies."""


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def places(now: list[float]) -> Iterator[Berths]:
    made = Berths(8 * BODY_BYTES, 2, lambda: now[0])
    yield made
    made.close()


def sizes(places: Berths) -> list[int]:
    return [os.fstat(fd).st_size for fd in places.fds]


def test_a_worker_sees_a_tensor_where_it_was_received(places: Berths) -> None:
    body = places.take(BODY_BYTES, HEAD)
    assert body is not None
    assert len(body) == BODY_BYTES
    tensor = np.frombuffer(body[HEAD : HEAD + (2 << 20)], "<f4").reshape(512, 1024)
    body[HEAD : HEAD + (2 << 20)] = np.arange(512 * 1024, dtype="<f4").tobytes()
    lying = places.find("x", tensor)
    assert lying is not None
    assert lying.region[:3] == ("x", "<f4", (512, 1024))
    assert lying.region.offset % ALIGNMENT == 0
    theirs = MappedFile(places.fds[lying.berth], mmap.PROT_READ)
    theirs.remap(lying.size)
    assert np.array_equal(theirs.view(lying.region), tensor)
    assert not theirs.view(lying.region).flags.writeable


def test_what_is_small_or_lies_elsewhere_is_not_found(places: Berths) -> None:
    assert places.take(BODY_BYTES - 1) is None
    body = places.take(BODY_BYTES)
    assert body is not None
    assert places.find("x", np.frombuffer(body, "u1")[: module.TENSOR_BYTES]) is not None
    assert places.find("x", np.frombuffer(body, "u1")[: module.TENSOR_BYTES - 1]) is None
    assert places.find("x", np.zeros(module.TENSOR_BYTES, "u1")) is None


def test_a_place_is_free_once_nobody_has_a_part_of_the_body(places: Berths) -> None:
    first, second = places.take(BODY_BYTES), places.take(BODY_BYTES)
    assert first is not None
    assert second is not None
    first[:] = b"1" * BODY_BYTES
    second[:] = b"2" * BODY_BYTES
    assert places.take(BODY_BYTES) is None
    part = np.frombuffer(first[100:200], "u1")
    del first
    assert places.take(BODY_BYTES) is None
    assert part.tobytes() == b"1" * 100
    del part
    third = places.take(BODY_BYTES)
    assert third is not None
    third[:] = b"3" * BODY_BYTES
    assert bytes(second) == b"2" * BODY_BYTES


def test_the_place_that_fits_best_is_taken(places: Berths) -> None:
    large, small = places.take(4 * BODY_BYTES), places.take(BODY_BYTES)
    before = sizes(places)
    del large, small
    again = places.take(BODY_BYTES), places.take(3 * BODY_BYTES)
    assert None not in again
    assert sizes(places) == before


def test_one_that_has_room_is_taken_before_one_that_would_have_to_grow(places: Berths) -> None:
    large, small = places.take(4 * BODY_BYTES), places.take(BODY_BYTES)
    before = sizes(places)
    del large, small
    body = 9 * BODY_BYTES // 4
    assert body - min(before) < max(before) - body, "the one that is too small is nearer"
    assert places.take(body) is not None
    assert sizes(places) == before


def test_a_small_body_does_not_keep_what_a_large_one_left() -> None:
    places = Berths(64 * BODY_BYTES, 1)
    assert places.take(32 * BODY_BYTES) is not None
    assert places.take(BODY_BYTES) is not None
    assert sizes(places) == [2 * BODY_BYTES]
    places.close()


def test_a_closed_set_has_no_places() -> None:
    places = Berths(BODY_BYTES, 1)
    body = places.take(BODY_BYTES)
    assert body is not None
    body[:] = b"1" * BODY_BYTES
    places.close()
    assert places.take(BODY_BYTES) is None
    assert bytes(body) == b"1" * BODY_BYTES


def test_no_body_beyond_the_capacity_and_none_without_memory(
    places: Berths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    assert places.take(8 * BODY_BYTES, 1) is not None
    assert places.take(8 * BODY_BYTES + 1000) is None
    places.take(BODY_BYTES)
    monkeypatch.setattr(mmap, "mmap", fail)
    assert places.take(6 * BODY_BYTES) is not None, "the larger one is there"
    larger = Berths(8 * BODY_BYTES, 1)
    assert larger.take(BODY_BYTES) is None
    larger.close()


def test_memory_goes_back_when_it_was_not_needed_for_a_while(
    places: Berths, now: list[float]
) -> None:
    body = places.take(BODY_BYTES)
    places.take(BODY_BYTES)
    now[0] += KEEP_S
    places.tend()
    assert min(sizes(places)) > BODY_BYTES
    now[0] += 0.1
    places.tend()
    assert sorted(size > BODY_BYTES for size in sizes(places)) == [False, True], "one is in use"
    del body
    places.tend()
    assert max(sizes(places)) < BODY_BYTES


def test_no_more_is_kept_than_is_said() -> None:
    places = Berths(KEPT_BYTES, 3)
    bodies = [places.take(size) for size in (KEPT_BYTES // 4, KEPT_BYTES // 2, KEPT_BYTES - 2000)]
    assert None not in bodies
    assert sum(sizes(places)) > KEPT_BYTES
    bodies.clear()
    places.tend()
    assert sum(sizes(places)) <= KEPT_BYTES + 3 * mmap.PAGESIZE
    places.close()


def test_of_more_than_is_kept_what_was_not_needed_for_longest_goes_back(now: list[float]) -> None:
    places = Berths(KEPT_BYTES, 3, lambda: now[0])
    bodies = []
    for _ in range(3):
        bodies.append(places.take(KEPT_BYTES // 4))
        now[0] += 1.0
    assert sizes(places) == [KEPT_BYTES // 2] * 3
    bodies.clear()
    places.tend()
    assert sizes(places) == [mmap.PAGESIZE, KEPT_BYTES // 2, KEPT_BYTES // 2]
    places.close()


WRITING = """
import sys
from app.workers import process_main
def run(call, tensors, rows, allocate, stop):
    tensors["x"].fill(0)
process_main.main(sys.argv[1:], run)
"""


@scenario
async def test_a_worker_cannot_write_there(places: Berths) -> None:
    body = places.take(BODY_BYTES)
    assert body is not None
    tensors = {"x": np.frombuffer(body, np.float32).reshape(1, 1, -1)}
    specs = {"x": engine.TensorSpec(tensors["x"].shape, "float32")}
    call, _ = engine.prepare("max_pool", "forward", {"kernel": 2}, specs)
    command = (sys.executable, "-c", WRITING)
    worker = ProcessWorker(ProcessOptions(berths=places, command=command))
    await worker.start()
    await worker.begin([Task(call, {"kernel": 2}, specs, None, [tensors], [1])])
    (outcome,) = await worker.finish()
    assert isinstance(outcome, ComputeFailed)
    assert "read-only" in str(outcome)
    await worker.close()


@scenario
async def test_a_worker_computes_from_there_with_the_same_bits(places: Berths) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 8, 300, 301), dtype=np.float32)
    weight = random.standard_normal((8, 8, 3, 3), dtype=np.float32)
    dy = random.standard_normal((2, 8, 298, 299), dtype=np.float32)
    data = x.tobytes(), dy.tobytes()
    worker = ProcessWorker(ProcessOptions(berths=places))
    await worker.start()
    for head in (HEAD, HEAD + 3):
        body = places.take(head + len(data[0]) + 7 + len(data[1]), HEAD)
        assert body is not None
        ends = head + len(data[0]), len(body)
        body[head : ends[0]] = data[0]
        body[-len(data[1]) :] = data[1]
        tensors = {
            "x": np.frombuffer(body[head : ends[0]], np.float32).reshape(x.shape),
            "weight": weight,
            "dy": np.frombuffer(body[-len(data[1]) :], np.float32).reshape(dy.shape),
        }
        assert all(places.find(name, tensors[name]) for name in ("x", "dy"))
        specs = {name: engine.TensorSpec(a.shape, "float32") for name, a in tensors.items()}
        call, _ = engine.prepare("conv", "backward", None, specs)
        expected = engine.run(call, {"x": x, "weight": weight, "dy": dy}, (2,))
        for company in (1, 2):
            rows = [2] * company
            await worker.begin([Task(call, None, specs, None, [tensors] * company, rows)])
            (result,) = await worker.finish()
            assert isinstance(result, Result)
            parts = engine.split(result.outputs, rows)
            for part in parts:
                assert encode(Answer(part, 1, 2)) == encode(Answer(expected, 1, 2))
        del body, tensors, parts, part
    await worker.close()
