"""What a run concludes: targets from known rows, tables, JSON, and nothing from a disturbed run."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks.kernels.cases import WEAK
from benchmarks.kernels.measure import Row, Timing
from benchmarks.kernels.report import Report
from benchmarks.kernels.scaling import Growth, exponent
from benchmarks.kernels.session import Job, run_all
from benchmarks.kernels.speedup import Speedup
from benchmarks.kernels.tables import document, grid
from benchmarks.kernels.targets import geometric_mean, plain, targets
from benchmarks.kernels.timing import Budget, Spread

OURS = ("auto", "fastest", "direct")


def same(value: float) -> Spread:
    return Spread(value, value, value)


def row(case: str, action: str, pytorch: float, naive: float, **more: object) -> Row:
    ours = {name: same(0.5) for name in OURS}
    plain_row = Row(
        case=case,
        operation="conv",
        action=action,
        convolution=True,
        compute_bound=False,
        flops=10**9,
        moved=10**7,
        timings={name: Timing(same(0.01), 3, 3) for name in (*OURS, "naive", "pytorch")},
        algorithms=dict.fromkeys(OURS, "direct"),
        pytorch_over={name: same(pytorch) for name in OURS},
        naive_over={name: same(naive) for name in OURS},
        of_sgemm=ours,
        of_copy=ours,
        workspace={"auto": 10, "naive": 200},
    )
    return dataclasses.replace(plain_row, **more)  # type: ignore[arg-type]


def report(*rows: Row, others: float | None = 0.0) -> Report:
    limits = {"sgemm": same(1e11), "copy": same(1e10)}
    return Report({"threads": 2}, limits, False, rows=list(rows), others=others)


def found(one: Report) -> dict[str, tuple[float, bool]]:
    return {target.text: (target.value, target.met) for target in targets(one)}


def test_geometric_mean() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)


def test_means_over_convolutions_and_over_all() -> None:
    pool = row("max-2", "forward", 8, 3, convolution=False)
    values = found(report(row("a", "forward", 0.5, 3), row("b", "forward", 2, 3), pool))
    assert values["1. PyTorch / auto, convolutions, forward"] == pytest.approx((1, True))
    assert values["1. PyTorch / auto, all, forward"] == pytest.approx((2, True))
    assert values["1. PyTorch / auto, every case"] == (0.5, True)
    assert not [text for text in values if "backward" in text]


def test_without_pytorch_nothing_is_said_of_it() -> None:
    alone = row("a", "forward", 1, 3, pytorch_over={})
    assert [text for text in found(report(alone)) if "PyTorch" in text] == []


def test_workspace_of_the_large_case() -> None:
    values = found(report(row("vgg-64", "forward", 1, 1)))
    assert values["2. workspace / naive's, vgg-64, forward"] == pytest.approx((0.05, True))


def test_more_than_sgemm_is_asked_only_where_less_is_multiplied() -> None:
    bound = row("r", "forward", 1, 1, compute_bound=True, of_sgemm=dict.fromkeys(OURS, same(0.9)))
    text = "3. auto / sgemm rate, fewer multiplications, forward"
    assert text not in found(report(bound))
    algorithms = {"auto": "winograd", "fastest": "winograd", "direct": "direct"}
    values = found(report(dataclasses.replace(bound, algorithms=algorithms)))
    assert values[text] == (0.9, False)
    assert values["3. direct / sgemm rate, compute-bound, forward"] == (0.9, True)


def test_no_target_is_of_layers_at_which_numpy_is_weak() -> None:
    one = report(*(row(name, "forward", 2, 4) for name in WEAK))
    assert plain(one)["targets"] == []
    text = document(one, markdown=True)
    assert "## Targets" not in text
    assert "dw-3d" in text


def test_the_limit_that_binds_is_the_one_that_is_nearer() -> None:
    near = row("p", "forward", 1, 1, of_copy=dict.fromkeys(OURS, same(0.7)))
    assert near.memory_bound
    assert near.of_limit == 0.7


@pytest.mark.parametrize("others", [0.0, None])
def test_a_quiet_run_is_judged(others: float | None) -> None:
    one = report(row("a", "forward", 2, 4), others=others)
    assert all(target["met"] is not None for target in plain(one)["targets"])
    assert "DISTURBED" not in document(one, markdown=False)


def test_what_the_machine_allows_stands_beside_what_threads_gain() -> None:
    one = report(row("res-64", "forward", 1, 3))
    one.speedups.append(Speedup("res-64", "forward", 8, 2, same(1.4)))
    one.ceiling = same(1.5)
    target = next(t for t in targets(one) if t.text == "5. 2 threads over 1, batches, forward")
    assert (target.value, target.goal, target.met) == (1.4, 1.8, False)
    assert "the machine allows 1.50" in target.note
    assert "1.50" in document(one, markdown=True)


def test_of_a_disturbed_run_only_memory_is_judged() -> None:
    one = report(row("vgg-64", "forward", 2, 4), others=1.5)
    judged = [target for target in plain(one)["targets"] if target["met"] is not None]
    assert [target["text"] for target in judged] == ["2. workspace / naive's, vgg-64, forward"]
    text = document(one, markdown=False)
    assert "DISTURBED" in text
    assert "not judged" in text


@pytest.mark.parametrize("markdown", [False, True])
def test_tables_name_every_case(markdown: bool) -> None:
    text = document(report(row("alpha", "forward", 2, 4), row("beta", "backward", 2, 4)), markdown)
    assert "alpha" in text
    assert "beta" in text


@pytest.mark.parametrize(("others", "marks"), [(0.0, 0), (1.5, 1)])
def test_pictures_of_a_disturbed_run_say_so(others: float, marks: int) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.kernels import plots

    one = report(row("a", "forward", 2, 4), row("a", "backward", 2, 4), others=others)
    one.growths = [Growth("N", "forward", (1, 2), (same(1), same(2)), 1.0)]
    for figure in (plots.kernels(one), plots.scaling(one)):
        assert figure.get_suptitle().count("DISTURBED") == marks


def test_grid() -> None:
    assert grid(["a", "b"], [["x", "10"]], markdown=False) == "a   b\nx  10"
    assert grid(["a", "b"], [["x", "1"]], markdown=True) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_json_holds_everything() -> None:
    text = json.dumps(plain(report(row("a", "forward", 2, 4))))
    (entry,) = json.loads(text)["rows"]
    assert entry["limit"] == "compute"
    assert entry["pytorch_over"]["auto"]["median"] == 2


def test_exponent_of_a_power_law() -> None:
    assert exponent([1, 2, 5, 10], [3, 12, 75, 300]) == pytest.approx(2)


def test_one_job_alone_does_not_get_the_time_of_all() -> None:
    given: list[Budget] = []
    run_all([Job("a", 1, given.append)], 80, 3, lambda _: None)
    assert given[0].seconds == pytest.approx(2, abs=0.1)


def test_once_the_time_is_up_the_rest_has_one_round_each_and_is_counted() -> None:
    given: list[Budget] = []
    jobs = [Job(name, 1, given.append) for name in "abc"]
    assert run_all(jobs, 0, 2, lambda _: None) == 3
    assert run_all(jobs, 60, 2, lambda _: None) == 0
    assert [budget.least for budget in given] == [1, 1, 1, 2, 2, 2]


def test_a_hurried_run_says_so() -> None:
    one = report(row("a", "forward", 2, 4))
    one.hurried = 5
    assert "5 measurements had a single round" in document(one, markdown=False)


def test_jobs_share_the_time_by_weight_and_are_told_of() -> None:
    given: list[Budget] = []
    told: list[str] = []
    jobs = [Job("a", 20, given.append), Job("b", 60, given.append)]
    run_all(jobs, 80, 3, told.append)
    # Nobody used any time here, so the second gets what the first has left over as well.
    assert given[0].seconds == pytest.approx(20, abs=1)
    assert given[1].seconds == pytest.approx(80, abs=1)
    assert told == ["[1/2] a", "[2/2] b"]
