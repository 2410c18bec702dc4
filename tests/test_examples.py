"""Runs the examples against a service: they are the first programs that a newcomer sees work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
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


def test_a_kernel_that_is_right_is_told_so(service: Running, tmp_path: Path) -> None:
    run = _run("check_kernel.py", "--url", service.url, "--layers", "20", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("20 layers are right; ")


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("slice(k * d, k * d + s", "slice(k, k + s", "y: "),  # without dilation
        ("return y + bias[:, None, None]", "return y", "y: "),
        ("dy.sum((0, 2, 3))", "2 * dy.sum((0, 2, 3))", "dbias: "),
        ("dx[:, :, top : top + height", "dx[:, :, : height", "dx: "),
        ("return y + bias", "return y[..., 1:] + bias", "y: shape "),
    ],
    ids=["dilation", "bias", "dbias", "padding", "shape"],
)
def test_a_kernel_that_is_wrong_is_told_where(
    right: str, wrong: str, told: str, service: Running, tmp_path: Path
) -> None:
    kernel = (ROOT / "examples/kernel.py").read_text()
    assert right in kernel
    (tmp_path / "mine.py").write_text(kernel.replace(right, wrong))
    run = _run("check_kernel.py", "--url", service.url, "--kernel", "mine.py", cwd=tmp_path)
    assert run.returncode == 1
    assert f"\n{told}" in run.stdout
    with np.load(tmp_path / "failed.npz") as failed:
        assert failed["true_dx"].shape == failed["x"].shape


def test_a_kernel_without_gradients_is_checked_for_its_outputs(
    service: Running, tmp_path: Path
) -> None:
    kernel = (ROOT / "examples/kernel.py").read_text().replace("def backward", "def _backward")
    (tmp_path / "mine.py").write_text(kernel)
    options = ("--url", service.url, "--kernel", "mine.py", "--layers", "5")
    run = _run("check_kernel.py", *options, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "dx" not in run.stdout


@pytest.mark.parametrize("script", ["photo.py", "train_digits.py", "check_kernel.py"])
def test_without_a_service_examples_say_how_to_start_one(script: str, tmp_path: Path) -> None:
    run = _run(script, "--url", "http://127.0.0.1:1", cwd=tmp_path)
    assert run.returncode == 1
    assert "make serve" in run.stderr
    assert "Traceback" not in run.stderr
