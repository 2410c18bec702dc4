"""Files may be as large as shared memory needs, or the service does not start."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.filesize import allow_file_size, largest_file
from app.main import cost_limits, desk_limits, dispatch_limits
from app.scribe.desk import scribe_maker
from app.settings import Settings
from app.staffing import worker_maker
from app.start import CannotStart
from app.workers.berths import Berths
from app.workers.process import ProcessWorker
from tests.serving import ROOT

MiB = 1 << 20
SETTINGS = Settings(
    workers=1,
    max_tensor_bytes=8 * MiB,
    max_batch_bytes=8 * MiB,
    max_body_bytes=8 * MiB,
    max_json_bytes=MiB,
    max_json_numbers=1 << 10,
)
NEEDED = largest_file(SETTINGS)
UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, max_tensor_bytes=99 * MiB),
        replace(SETTINGS, max_batch_bytes=99 * MiB),
        replace(SETTINGS, max_body_bytes=99 * MiB),
        replace(SETTINGS, max_json_bytes=8 * MiB),
        replace(SETTINGS, max_json_numbers=8 * MiB),
    ],
    ids=["small", "tensors", "batches", "bodies", "JSON", "numbers"],
)
def test_it_is_what_the_largest_arena_of_all_may_have(settings: Settings) -> None:
    limits = dispatch_limits(settings, cost_limits(settings))
    worker, berths = worker_maker(limits)(), Berths(limits.body_bytes)
    scribe = scribe_maker(desk_limits(settings))()
    assert isinstance(worker, ProcessWorker)
    arenas = [*worker._arenas, *berths._arenas, scribe._arena]
    assert largest_file(settings) == max(arena.capacity for arena in arenas)
    for arena in arenas:
        arena.close()


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], list[tuple[int, int]]]:
    """Sets limits; gives the list of those that are set then."""

    def limit(soft: int, hard: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _, limits: found.append(limits))
        return found

    return limit


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((UNLIMITED, UNLIMITED), []),
        ((NEEDED, NEEDED), []),
        ((NEEDED - 1, NEEDED), [(NEEDED, NEEDED)]),
        ((0, UNLIMITED), [(NEEDED, UNLIMITED)]),
    ],
    ids=["unlimited", "just enough", "raised", "raised without end"],
)
def test_it_is_raised_where_it_is_too_low(
    limits: tuple[int, int],
    expected: list[tuple[int, int]],
    limited: Callable[[int, int], list[tuple[int, int]]],
) -> None:
    found = limited(*limits)
    allow_file_size(SETTINGS)
    assert found == expected


def test_where_it_cannot_be_raised_so_far_nothing_is_begun(
    limited: Callable[[int, int], list[tuple[int, int]]],
) -> None:
    limited(0, NEEDED - 1)
    with pytest.raises(CannotStart, match="ulimit -f"):
        allow_file_size(SETTINGS)
    allow_file_size(replace(SETTINGS, workers=0))


LIMITED = """
import resource, sys
from app.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
sys.exit(main(["serve", "--port", "0", "--workers", "1", "--max-tensor-bytes", "8388608"]))
"""


def test_one_line_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("convoke: cannot start: files may have 1048576 bytes, and ")
    assert done.stderr.count("\n") == 1
