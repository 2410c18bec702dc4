"""Timing: whose turn it is, what is counted, and what the statistics say of known durations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from benchmarks.kernels.timing import WARM_UP, Budget, Peer, Samples, Spread, paired, settle


class World:
    """A clock that only the peers' calls move, and a list of what happened."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[str] = []

    def clock(self) -> float:
        return self.now

    def rest(self) -> None:
        self.events.append("rest")

    def peer(self, name: str, seconds: float, ready: Callable[[], None] | None = None) -> Peer:
        def call() -> None:
            self.now += seconds
            self.events.append(name)

        return Peer(name, call, ready or (lambda: self.events.append(f"ready {name}")))


def test_spread_is_median_and_percentiles() -> None:
    spread = Spread.of([float(v) for v in range(101)])
    assert (spread.low, spread.median, spread.high) == (10, 50, 90)
    assert spread.scaled(2) == Spread(100, 20, 180)


def test_a_peers_seconds_are_those_of_its_timed_calls() -> None:
    world = World()
    found = paired([world.peer("a", 0.01)], Budget(0, least=2), world.clock, world.rest)
    assert [len(burst) for burst in found["a"].bursts] == [2, 2]
    assert found["a"].seconds.median == pytest.approx(0.01)


def test_order_is_reversed_every_other_round_with_a_rest_before_each_burst() -> None:
    world = World()
    peers = [world.peer("a", 0.01), world.peer("b", 0.01)]
    paired(peers, Budget(0, least=2, burst=0.01), world.clock, world.rest)
    a = ["rest", "ready a", "a", "a"]
    b = ["rest", "ready b", "b", "b"]
    estimates = ["ready a", "a", "a", "ready b", "b", "b"]
    assert world.events == [*estimates, *a, *b, *b, *a]


def test_rounds_end_with_the_budget_but_not_before_the_least() -> None:
    world = World()
    found = paired([world.peer("a", 0.02)], Budget(1.0, least=2), world.clock, world.rest)
    assert len(found["a"].bursts) == 24
    world = World()
    found = paired([world.peer("a", 0.02)], Budget(0.0, least=2), world.clock, world.rest)
    assert len(found["a"].bursts) == 2
    world = World()
    found = paired([world.peer("a", 0.02)], Budget(9.0, most=4), world.clock, world.rest)
    assert len(found["a"].bursts) == 4


def test_a_slow_peer_has_two_rounds() -> None:
    world = World()
    budget = Budget(3.0, least=3, slow=0.5)
    found = paired([world.peer("slow", 0.6), world.peer("b", 0.1)], budget, world.clock, world.rest)
    assert world.events.count("slow") == 1 + 2
    assert len(found["slow"].bursts) == 2
    assert len(found["b"].bursts) >= 3


@pytest.mark.parametrize(("seconds", "calls"), [(WARM_UP * 0.9, 2 + 2 * 2), (WARM_UP * 1.1, 1 + 2)])
def test_a_long_call_needs_no_warm_up(seconds: float, calls: int) -> None:
    """Neither before it is estimated nor before a burst."""
    world = World()
    paired([world.peer("a", seconds)], Budget(0, least=2), world.clock, world.rest)
    assert world.events.count("a") == calls


def test_what_is_known_of_a_peer_is_not_estimated() -> None:
    world = World()
    known = dataclasses.replace(world.peer("a", 1.0), single=1.0)
    found = paired([known], Budget(0, least=1), world.clock, world.rest)
    assert world.events == ["rest", "ready a", "a"]
    assert found["a"].seconds.median == 1


def test_ratios_are_taken_within_rounds() -> None:
    """The machine halves its speed after round 0; both peers feel it, so the ratio does not."""
    ours = Samples(((1.0, 1.0, 9.0), (2.0,), (2.0,)))
    theirs = Samples(((3.0,), (6.0,), (6.0,)))
    assert theirs.over(ours) == Spread(3, 3, 3)


def test_ratios_use_only_rounds_that_both_took_part_in() -> None:
    assert Samples(((4.0,),)).over(Samples(((2.0,), (100.0,)))).median == 2


def test_settling_is_bounded_and_tells_how_long_it_took() -> None:
    assert settle(limit=0.0) == 0
    assert 0 < settle(limit=5.0) < 5.0
