"""The batcher against a model of it, and the rules that it states one by one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app import batcher as module
from app.batcher import Batcher, BatchLimits, Entry
from app.sameness import FINGERPRINT_BYTES
from tests.app.limits import batch_limits

LIMITS = BatchLimits(requests=4, rows=10, nbytes=100, work=50, trip_requests=3, trip_work=70)


@dataclass(eq=False, slots=True, kw_only=True)
class Named(Entry):
    name: int = 0


def entry(name: int = 0, **given: Any) -> Named:
    fields: dict[str, Any] = {
        "call": "conv",
        "parameters": (),
        "rows": 1,
        "nbytes": 1,
        "work": 1.0,
        "caller": "a",
    }
    return Named(name=name, **(fields | given))


def names(batch: list[Named]) -> list[int]:
    return [one.name for one in batch]


def take(batcher: Batcher[Named], share: int = 1) -> list[Named]:
    """The only batch of the next trip; empty where nothing waits."""
    trip = batcher.take(0.0, share)
    assert len(trip) < 2
    return trip[0] if trip else []


class Machine(RuleBasedStateMachine):
    """Everything that is added comes out once, unless it is cancelled or overdue."""

    def __init__(self) -> None:
        super().__init__()
        self.batcher: Batcher[Named] = Batcher(LIMITS)
        self.waiting: dict[int, Named] = {}
        self.taken: list[Named] = []
        self.now = 0.0
        self.count = 0

    @rule(
        call=st.sampled_from(["conv", "pool"]),
        weight=st.sampled_from([0.0, -0.0, 1.0, np.nan]),
        rows=st.integers(0, 12),
        nbytes=st.integers(0, 120),
        work=st.integers(0, 60),
        caller=st.sampled_from("abc"),
        patience=st.none() | st.integers(1, 3),
        alone=st.booleans(),
        brief=st.booleans(),
    )
    def add(self, weight: float, patience: int | None, **given: Any) -> None:
        self.count += 1
        one = entry(
            self.count,
            parameters=(np.array([weight]),),
            deadline=None if patience is None else self.now + patience,
            **given,
        )
        self.waiting[one.name] = one
        self.batcher.add(one)

    @rule(share=st.integers(1, 3))
    def take(self, share: int) -> None:
        trip = self.batcher.take(self.now, share)
        batch = [one for each in trip for one in each]
        overdue = [o for o in self.waiting.values() if o.deadline and o.deadline <= self.now]
        due = [one for one in self.waiting.values() if one not in overdue]
        assert bool(batch) == bool(due)
        for one in batch:
            assert self.waiting.pop(one.name) is one
            assert one not in overdue
        for each in trip:
            self.check(each)
        if len(trip) > 1:
            assert all(one.brief and not one.alone for one in batch)
            assert len(batch) <= LIMITS.trip_requests
            assert sum(one.nbytes for one in batch) <= LIMITS.nbytes
            assert sum(one.work for one in batch[len(trip[0]) :]) <= LIMITS.trip_work
        self.taken = batch
        # Overdue entries are forgotten when their turn comes; until then they are counted.
        for one in overdue:
            self.batcher.cancel(one)
            del self.waiting[one.name]

    def check(self, batch: list[Named]) -> None:
        if len(batch) < 2:
            return
        assert len(batch) <= LIMITS.requests
        assert sum(one.rows for one in batch) <= LIMITS.rows
        assert sum(one.nbytes for one in batch) <= LIMITS.nbytes
        assert sum(one.work for one in batch) <= LIMITS.work
        assert not any(one.alone for one in batch)
        kinds = {(one.call, *(p.tobytes() for p in one.parameters)) for one in batch}
        assert len(kinds) == 1
        assert names(batch[1:]) == sorted(names(batch[1:]))

    @precondition(lambda self: self.taken)
    @rule()
    def run_again(self) -> None:
        for one in self.taken:
            one.alone = True
            self.waiting[one.name] = one
            self.batcher.add(one)
        self.taken = []

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        one = self.waiting.pop(data.draw(st.sampled_from(sorted(self.waiting))))
        assert self.batcher.cancel(one)
        assert not self.batcher.cancel(one)

    @rule()
    def time_passes(self) -> None:
        self.now += 1

    @invariant()
    def sums(self) -> None:
        assert self.batcher.depth == len(self.waiting)
        assert self.batcher.nbytes == sum(one.nbytes for one in self.waiting.values())

    def teardown(self) -> None:
        while self.waiting:
            self.take(share=1)
            self.sums()
        assert not self.batcher._open


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMachine = Machine.TestCase


def test_one_caller_is_served_in_the_order_of_arrival() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name in range(20):
        batcher.add(entry(name, call=name % 3, work=float(name * 7 % 5)))
    leaders = []
    while trip := batcher.take(0.0):
        (batch,) = trip
        assert names(batch) == sorted(names(batch))
        leaders.append(batch[0].name)
    assert leaders == [0, 1, 2]


def test_little_work_does_not_wait_behind_another_callers_flood() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name in range(50):
        batcher.add(entry(name, call=name, work=1e9, caller="flood"))
    batcher.take(0.0)
    batcher.take(0.0)
    for name in (100, 101, 102):
        batcher.add(entry(name, call=name, work=1e6, caller="small"))
    assert [take(batcher)[0].name for _ in range(4)] == [100, 101, 102, 2]


def test_a_flood_that_has_drained_is_not_held_against_its_caller() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=1))
    batcher.add(entry(0, caller="a", work=1e9))
    assert names(take(batcher)) == [0]
    assert take(batcher) == []
    batcher.add(entry(1, caller="a"))
    batcher.add(entry(2, caller="b"))
    assert [names(take(batcher)), names(take(batcher))] == [[1], [2]]


def test_callers_with_equal_work_take_turns() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=1))
    for name in range(6):
        batcher.add(entry(name, caller="a"))
    for name in range(6, 9):
        batcher.add(entry(name, caller="b"))
    order = [take(batcher)[0].caller for _ in range(9)]
    assert order[:6].count("b") == 3


def test_who_is_new_does_not_go_past_those_who_wait_since_somebody_is_served_again() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=1))
    for name in range(4):
        batcher.add(entry(name, caller="a"))
    (first,), *_ = [take(batcher) for _ in range(3)]
    batcher.add(first)
    assert names(take(batcher)) == [0]
    for name in (4, 5):
        batcher.add(entry(name, caller="b"))
    assert [names(take(batcher)) for _ in range(3)] == [[4], [3], [5]]


def test_a_mate_that_is_overdue_is_not_handed_out() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name, deadline in enumerate((None, 1.0, 1.5)):
        batcher.add(entry(name, deadline=deadline))
    assert [names(batch) for batch in batcher.take(1.0)] == [[0, 2]]
    assert batcher.take(1.0) == []
    assert batcher.depth == 0


def test_free_workers_share_a_group() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name in range(7):
        batcher.add(entry(name))
    assert [len(take(batcher, share)) for share in (3, 2, 1)] == [3, 2, 2]


@pytest.mark.parametrize("budget", ["requests", "rows", "nbytes", "work"])
def test_budgets_are_exact(budget: str) -> None:
    wide: dict[str, Any] = {"requests": 99, "rows": 99, "nbytes": 99, "work": 99.0}
    for most, first in ((4, [0, 1, 2, 3]), (3, [0, 1, 2])):
        batcher: Batcher[Named] = Batcher(batch_limits(**wide | {budget: most}))
        for name in range(4):
            batcher.add(entry(name))
        assert names(take(batcher)) == first
        assert names(take(batcher)) == [0, 1, 2, 3][len(first) :]


def test_a_request_beyond_the_budgets_is_computed_by_itself() -> None:
    batcher: Batcher[Named] = Batcher(LIMITS)
    batcher.add(entry(1, rows=99, nbytes=999, work=999.0))
    batcher.add(entry(2))
    assert names(take(batcher)) == [1]
    assert names(take(batcher)) == [2]


def test_batching_can_be_switched_off() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=1))
    for name in range(3):
        batcher.add(entry(name))
    assert [names(take(batcher)) for _ in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("size", "where"),
    # At once, as two copies, and in pieces, of which only one differs.
    [(100, 50), (4_000, 2_000), *((40_000, at) for at in (0, 5_000, 39_999))]
    + [(600_000, at) for at in (200_000, 400_000, 599_000)],
)
def test_parameters_are_compared_byte_by_byte(size: int, where: int) -> None:
    weight = np.arange(size, dtype=np.float32)
    other = weight.copy()
    other[where] += 0.5
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name, given in enumerate((weight, weight.copy(), other, weight)):
        batcher.add(entry(name, parameters=(given,)))
    batches = [names(take(batcher)) for _ in range(3)]
    assert [name for batch in batches for name in batch if name == 2] == [2]
    assert [2] in batches
    assert sorted(itertools.chain(*batches)) == [0, 1, 2, 3]


def test_equal_bytes_of_other_shape_or_type_do_not_share() -> None:
    zeros = np.zeros(8, np.float32)
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name, given in enumerate((zeros, zeros.reshape(2, 4), zeros.view(np.int32))):
        batcher.add(entry(name, parameters=(given,)))
    assert [names(take(batcher)) for _ in range(3)] == [[0], [1], [2]]


def test_a_group_is_open_until_the_last_of_its_entries_has_gone() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=2))
    for name in range(3):
        batcher.add(entry(name))
    assert names(take(batcher)) == [0, 1]
    batcher.add(entry(3))
    assert names(take(batcher)) == [2, 3]


def test_a_group_that_ends_leaves_open_what_took_its_place() -> None:
    old = np.zeros(2 * FINGERPRINT_BYTES + 1, np.uint8)
    new = old.copy()
    new[FINGERPRINT_BYTES] = 1  # in the midst, where no fingerprint looks
    batcher: Batcher[Named] = Batcher(batch_limits())
    for name, given in enumerate((old, new)):
        batcher.add(entry(name, parameters=(given,)))
    assert names(take(batcher)) == [0]
    batcher.add(entry(2, parameters=(new,)))
    assert names(take(batcher)) == [1, 2]


def test_those_who_stay_keep_their_order_however_many_go() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=1))
    works = np.random.default_rng(0).permutation(100).tolist()
    firsts = [entry(caller=str(work), work=work) for work in works]
    # Their tags are the works of the first.
    seconds = [entry(work, caller=str(work)) for work in works]
    for one in (*firsts, *seconds):
        batcher.add(one)
    for one in (*firsts, *seconds[::2]):
        batcher.cancel(one)
    assert len(batcher._order) < 100, "those that are gone have been cleared away"
    served = [take(batcher)[0].name for _ in works[1::2]]
    assert served == sorted(works[1::2])


def test_what_is_gone_is_not_remembered() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits())
    kept = entry(0, caller="old")
    batcher.add(kept)
    for name in range(1, 2 * module.MOST_CALLERS):
        one = entry(name, call=name, caller=str(name))
        batcher.add(one)
        batcher.cancel(one)
    assert len(batcher._order) < 100
    assert len(batcher._finish) <= module.MOST_CALLERS
    assert names(take(batcher)) == [0]
    assert batcher.take(0.0) == []
    assert not batcher._order


# ---- trips


def trips(batcher: Batcher[Named], share: int = 1) -> list[list[list[int]]]:
    """Names of all that waits, batch by batch and trip by trip."""
    found = []
    while trip := batcher.take(0.0, share):
        found.append(list(map(names, trip)))
    return found


def filled(*entries: Named, **limits: Any) -> Batcher[Named]:
    batcher: Batcher[Named] = Batcher(batch_limits(**limits))
    for one in entries:
        batcher.add(one)
    return batcher


def brief(name: int, call: object = None, **given: Any) -> Named:
    return entry(name, call=name if call is None else call, brief=True, **given)


def test_brief_batches_travel_together_in_the_order_of_their_turns() -> None:
    batcher = filled(*(brief(name, call=name % 4) for name in range(6)))
    assert trips(batcher) == [[[0, 4], [1, 5], [2], [3]]]


def test_what_takes_long_travels_alone() -> None:
    batcher = filled(brief(0), brief(1), entry(2, call=2), entry(3, call=3), brief(4), brief(5))
    assert trips(batcher) == [[[0], [1]], [[2]], [[3]], [[4], [5]]]


def test_a_batch_with_one_that_is_not_brief_travels_alone() -> None:
    long = entry(1, call="conv")
    batcher = filled(brief(0, "conv"), long, brief(2), brief(3, "pool"), entry(4, call="pool"))
    assert trips(batcher) == [[[0, 1]], [[2], [3]], [[4]]]


def test_who_was_in_a_trip_that_failed_has_the_next_alone() -> None:
    batcher = filled(brief(0), brief(1, alone=True), brief(2), brief(3))
    assert trips(batcher) == [[[0]], [[1]], [[2], [3]]]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"trip_requests": 3}, [[[0], [1], [2]], [[3], [4]]]),
        ({"requests": 2}, [[[0], [1]], [[2], [3]], [[4]]]),
        ({"nbytes": 4}, [[[0], [1], [2], [3]], [[4]]]),
        ({"trip_work": 2.0}, [[[0], [1]], [[2], [3]], [[4]]]),
        ({"requests": 1}, [[[0]], [[1]], [[2]], [[3]], [[4]]]),
    ],
)
def test_a_trip_has_budgets(limits: dict[str, Any], expected: object) -> None:
    assert trips(filled(*map(brief, range(5)), **limits)) == expected


def test_mates_beyond_the_budgets_of_a_trip_have_the_next() -> None:
    given = [brief(0), *(brief(name, "conv") for name in (1, 2, 3)), brief(4)]
    assert trips(filled(*given, trip_work=3.0)) == [[[0], [1, 2]], [[3], [4]]]
    # A first batch is as large as if it were the only one.
    equal = [brief(name, "conv") for name in range(4)]
    assert trips(filled(*equal, brief(4), trip_work=3.0)) == [[[0, 1, 2, 3]], [[4]]]


def test_batches_of_many_travel_alone() -> None:
    pairs = [brief(name, call=name % 2) for name in range(10)]
    evens, odds = list(range(0, 10, 2)), list(range(1, 10, 2))
    assert trips(filled(*pairs, trip_requests=5)) == [[evens], [odds]]
    # Nor does a trip take more of a batch than it has room for.
    assert trips(filled(*pairs, trip_requests=7)) == [[evens, odds[:2]], [odds[2:]]]


def test_free_workers_share_what_is_brief() -> None:
    batcher = filled(*map(brief, range(7)))
    shares = [[names(batch) for batch in batcher.take(0.0, share)] for share in (3, 2, 1)]
    assert shares == [[[0], [1], [2]], [[3], [4]], [[5], [6]]]


def test_who_comes_is_before_what_a_worker_gives_back() -> None:
    flood = [brief(name, caller="flood", work=9.0) for name in range(4)]
    batcher = filled(*flood)
    assert trips(batcher) == [[[0], [1], [2], [3]]]
    for one in flood[1:]:
        batcher.add(one)
    batcher.add(brief(4, caller="other"))
    assert trips(batcher) == [[[4], [1], [2], [3]]]


def test_callers_take_turns_within_a_trip() -> None:
    given = [brief(name, caller="flood") for name in range(9)]
    late = [brief(name, caller="other") for name in range(9, 12)]
    batcher = filled(*given, *late, trip_requests=6)
    assert sum(name >= 9 for (name,) in trips(batcher)[0]) == 3
