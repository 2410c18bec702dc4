"""Runs the examples against a service: they are the first programs that a newcomer sees work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.serving import ROOT, Running, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(log=tmp_path_factory.mktemp("examples") / "log") as running:
        yield running


def _run(script: str, *options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, ROOT / "examples" / script, *options]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["photo.py", "train_digits.py"])
def test_examples_draw_their_picture(script: str, service: Running, tmp_path: Path) -> None:
    """`train_digits.py` succeeds only where it reaches its accuracy on digits it has not seen."""
    run = _run(script, "--url", service.url, "--output", "out.png", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    with Image.open(tmp_path / "out.png") as drawn, Image.open(_kept(script)) as kept:
        assert drawn.size == kept.size


def _kept(script: str) -> Path:
    return ROOT / "docs" / Path(script).with_suffix(".png")


@pytest.mark.parametrize("script", ["photo.py", "train_digits.py"])
def test_without_a_service_examples_say_how_to_start_one(script: str, tmp_path: Path) -> None:
    run = _run(script, "--url", "http://127.0.0.1:1", cwd=tmp_path)
    assert run.returncode == 1
    assert "make serve" in run.stderr
    assert "Traceback" not in run.stderr
