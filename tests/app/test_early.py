"""What others' variables say is nothing to us."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from app.early import forget_variables_of_others
from tests.serving import serving

CONVOKE = "import sys; from app.cli import main; sys.exit(main())"
COMMANDS = {
    "python -m app": (sys.executable, "-m", "app"),
    "convoke serve": (sys.executable, "-c", CONVOKE, "serve"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("propagators", ["b3", "nosuch"])
def test_variables_that_are_meant_for_others_have_no_effect(
    command: tuple[str, ...], propagators: str, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    others = {
        "OTEL_PROPAGATORS": propagators,
        "OTEL_PYTHON_CONTEXT": "nosuch",
        "PROMETHEUS_MULTIPROC_DIR": str(files),
        "prometheus_multiproc_dir": str(files),
        "WEB_CONCURRENCY": "auto",
    }
    log = tmp_path / "log"
    with serving(command, "--workers", "0", environ=others, log=log) as running:
        assert httpx.get(f"{running.url}/livez").status_code == 200
        assert 'action="none"' in httpx.get(f"{running.url}/metrics").text
    assert not [*files.iterdir()]
    assert "Traceback" not in log.read_text()


def test_what_is_ours_is_kept() -> None:
    ours = {"PATH": "/bin", "CONVOKE_PORT": "1", "PROMETHEUS_DISABLE_CREATED_SERIES": "1"}
    environ = ours | {"OTEL_SERVICE_NAME": "x", "prometheus_multiproc_dir": "/tmp"}
    forget_variables_of_others(environ)
    assert environ == ours
