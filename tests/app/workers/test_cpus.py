"""CPUs that a container's quota allows, read from files made for the purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.workers import cpus
from app.workers.cpus import available_cpus, threads_of_a_task, threads_per_worker
from engine.threads import MOST_THREADS
from tests.app.workers.groups import write


@pytest.fixture(autouse=True)
def _eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "usable_cpus", lambda: 8)


V1 = "sys/fs/cgroup/cpu"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "9900000 100000\n"}, 8),
        ({"sys/fs/cgroup/cpu.max": "100000 0\n"}, 8),
        ({"proc/self/cgroup": "none\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        (
            {
                "proc/self/cgroup": "0::/pod/box\n",
                "sys/fs/cgroup/pod/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/pod/box/cpu.max": "600000 100000\n",
            },
            3,
        ),
        ({f"{V1}/cpu.cfs_quota_us": "-1\n", f"{V1}/cpu.cfs_period_us": "100000\n"}, 8),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/box\n2:memory:/other\n",
                f"{V1}/box/cpu.cfs_quota_us": "200000\n",
                f"{V1}/box/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
    ],
)
def test_the_least_quota_on_the_way_up_counts(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    write(tmp_path, files)
    assert available_cpus(tmp_path) == expected


def test_this_machine_has_at_least_one() -> None:
    assert 1 <= available_cpus() <= 8


@pytest.mark.parametrize(("available", "threads"), [(1, 1), (3, 3), (64, MOST_THREADS)])
def test_a_task_has_no_more_threads_than_pay(
    available: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpus, "available_cpus", lambda: available)
    assert threads_of_a_task() == threads


@pytest.mark.parametrize(
    ("workers", "available", "threads"), [(1, 8, 8), (3, 8, 2), (8, 8, 1), (9, 8, 1), (0, 4, 4)]
)
def test_workers_do_not_fight_over_cpus(workers: int, available: int, threads: int) -> None:
    assert threads_per_worker(workers, available) == threads
