"""Whatever was run is in the report, as text and as JSON, and every body is held to its target."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.load.loads import Spec
from benchmarks.load.results import Outcome
from benchmarks.service_report import as_json, markdown
from benchmarks.service_scenarios import ECHO, OURS, SIMPLE, SIMPLE_1, Fairness, Findings, Overload
from benchmarks.service_targets import checks


def outcome(answers: int = 11) -> Outcome:
    due = np.linspace(0.0, 1.0, answers)
    zero = np.zeros(answers)
    spec = Spec(stream="small-forward", connections=1, seconds=1.0)
    return Outcome(spec, due, due, due + 0.1, zero + 200, zero, zero + 8, [2], [], 1 << 20, 0.5)


def findings() -> Findings:
    some = [outcome()]
    rounds = dict.fromkeys((ECHO, SIMPLE, SIMPLE_1, OURS), some)
    loads = ["small-forward × 64", "small-forward × 1", "mixed × 32"]
    loads += [
        f"{size}-{action} × 16"
        for size in ("middle", "large")
        for action in ("forward", "backward")
    ]
    return Findings(
        closed=dict.fromkeys(loads, rounds),
        ladder={100.0: {OURS: some}},
        overload={"small-forward": Overload("ours, queue of 256", 256, 2 * some, some)},
        fairness=Fairness(some, some, some, some),
    )  # fmt: skip


def test_everything_that_was_run_is_told() -> None:
    found = findings()
    text, parts = markdown(found), json.loads(as_json(found, {}))
    assert parts["closed"].keys() == found.closed.keys()
    assert parts["open"].keys() == {"100"}
    assert len(parts["overload"]) == 2
    assert len(parts["fairness"]) == 4
    for part in ("closed", "overload", "fairness"):
        for load, servers in parts[part].items():
            assert f"| {load} " in text
            for numbers in servers.values():
                assert numbers.keys() >= {"requests_per_s", "p50_ms", "p99_ms", "p999_ms"}
                assert numbers.keys() >= {"bytes_per_s", "memory_bytes", "batch"}


def test_overload_is_held_to_the_peaks_beside_it() -> None:
    peak, over = [outcome(count) for count in (11, 31, 101)], [outcome(21), outcome(33)]
    found = Findings(overload={"small-forward": Overload("ours, queue of 256", 256, peak, over)})
    before, between, after = (each.rate for each in peak)
    ratios = [over[0].rate * 2 / (before + between), over[1].rate * 2 / (between + after)]
    accepted = checks(found)[0]
    assert (accepted.low, accepted.high) == (min(ratios), max(ratios))
    assert not accepted.met


def test_what_was_not_measured_is_not_met() -> None:
    over = [outcome(21), outcome(33)]
    assert not any((each.status == 503).any() for each in over)
    peak = [outcome(count) for count in (11, 31, 101)]
    found = Findings(overload={"small-forward": Overload("ours", 256, peak, over)})
    for check in checks(found)[1:3]:
        assert ("refusals" in check.what, "retries" in check.what).count(True) == 1
        assert not check.met
        assert check.verdict == "not measured"
    written = json.loads(as_json(found, {}))["targets"][1:3]
    assert [(each["value"], each["verdict"]) for each in written] == [(None, "not measured")] * 2


def test_what_has_no_bound_is_only_shown() -> None:
    shown = [check for check in checks(findings()) if check.number == 6]
    assert shown
    assert {check.verdict for check in shown} == {"shown only"}


def test_every_large_body_has_its_target() -> None:
    named = {check.what.split(" ×")[0] for check in checks(findings()) if check.number == 2}
    assert named == {"middle-forward", "middle-backward", "large-forward", "large-backward"}
