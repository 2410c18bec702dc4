"""The memory that a container's limit allows, read from files made for the purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.workers import ram
from app.workers.ram import available_memory
from tests.app.workers.groups import write

GIB = 1 << 30
V1 = "sys/fs/cgroup/memory"


@pytest.fixture(autouse=True)
def _eight_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ram, "_installed", lambda: 8 * GIB)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8 * GIB),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8 * GIB),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{GIB}\n"}, GIB),
        ({"sys/fs/cgroup/memory.max": f"{99 * GIB}\n"}, 8 * GIB),
        (
            {
                "proc/self/cgroup": "0::/pod/box\n",
                "sys/fs/cgroup/pod/memory.max": f"{2 * GIB}\n",
                "sys/fs/cgroup/pod/box/memory.max": f"{3 * GIB}\n",
            },
            2 * GIB,
        ),
        *(({"sys/fs/cgroup/memory.max": odd}, 8 * GIB) for odd in ("", "0\n", "-1\n", "lots\n")),
        # None, as version 1 has it.
        ({f"{V1}/memory.limit_in_bytes": "9223372036854771712\n"}, 8 * GIB),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/other\n2:memory:/box\n",
                f"{V1}/box/memory.limit_in_bytes": f"{GIB // 2}\n",
            },
            GIB // 2,
        ),
        # In a container the group that is named is not there to be seen.
        (
            {
                "proc/self/cgroup": "2:memory:/docker/0123\n",
                f"{V1}/memory.limit_in_bytes": f"{GIB}\n",
            },
            GIB,
        ),
    ],
)
def test_the_least_limit_on_the_way_up_counts(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    write(tmp_path, files)
    assert available_memory(tmp_path) == expected


def test_this_machine_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert available_memory() > 1 << 26
