"""There are files enough for workers beside all connections, or fewer connections."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import replace

import pytest

from app.files import files_besides, least_files, with_files
from app.settings import Settings

PROGRAM = """
import dataclasses, json, resource, sys
from app.files import with_files
from app.settings import Settings

soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
given = Settings(workers=2, max_connections=connections)
got = with_files(given)
assert got == dataclasses.replace(given, max_connections=got.max_connections)
print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE), got.max_connections]))
"""

BESIDES = files_besides(Settings(workers=2))
LEAST = least_files(Settings(workers=2))


@pytest.mark.parametrize("error", [ValueError, OverflowError])
def test_a_system_may_have_a_limit_that_it_does_not_name(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise error

    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (LEAST + 500, unlimited))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    given = Settings(workers=2)
    assert with_files(given) == replace(given, max_connections=LEAST + 500 - BESIDES)


@pytest.mark.parametrize(
    ("limits", "connections", "expected"),
    [
        ((1024, 4096), 1000, ((1000 + BESIDES, 4096), 1000)),
        ((1000 + BESIDES, 4096), 1000, ((1000 + BESIDES, 4096), 1000)),
        ((4000, 4096), 1000, ((4000, 4096), 1000)),
        ((512, 1024), 1000, ((1024, 1024), 1024 - BESIDES)),
        ((LEAST, LEAST), 1000, ((LEAST, LEAST), 1)),
    ],
    ids=["raised", "just enough", "more than enough", "not to be had", "next to none"],
)
def test_as_many_as_are_needed(
    limits: tuple[int, int], connections: int, expected: tuple[tuple[int, int], int]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, [*limits, connections])],
        capture_output=True,
        text=True,
        check=True,
    )
    files, left = json.loads(done.stdout)
    assert (tuple(files), left) == expected
