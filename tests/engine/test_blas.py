"""Which BLAS is found, and what is known of its kernels."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine import blas

PROBE = "from engine import blas; print(blas.find().kernels, blas.multiplies_in_place())"


def test_threads_are_set_and_told() -> None:
    found = blas.find()
    if found is None:
        pytest.skip("NumPy was built with another BLAS")
    before = found.get_threads()
    try:
        found.set_threads(2)
        assert found.get_threads() == 2
    finally:
        found.set_threads(before)


def test_kernels_without_512_bit_vectors_copy_their_operands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if blas.find() is None:
        pytest.skip("NumPy was built with another BLAS")
    # Every processor that runs NumPy's wheels for x86-64 has what these kernels take.
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    told = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    ).stdout.split()
    if told[0] != "Nehalem":
        pytest.skip("this processor is not of that family")
    assert told[1] == "False"


@pytest.mark.parametrize(("kernels", "expected"), [("SkylakeX", True), ("Zen", False), ("", False)])
def test_kernels_with_them_read_small_operands_in_place(
    monkeypatch: pytest.MonkeyPatch, kernels: str, expected: bool
) -> None:
    monkeypatch.setattr(blas, "find", lambda: blas.Blas(lambda _: None, lambda: 1, kernels))
    assert blas.multiplies_in_place() == expected
    monkeypatch.setattr(blas, "find", lambda: None)
    assert not blas.multiplies_in_place()


@pytest.mark.parametrize(
    ("kernels", "expected"), [("Haswell", True), ("SkylakeX", False), ("", False)]
)
def test_kernels_whose_last_columns_are_known_to_differ(
    monkeypatch: pytest.MonkeyPatch, kernels: str, expected: bool
) -> None:
    monkeypatch.setattr(blas, "find", lambda: blas.Blas(lambda _: None, lambda: 1, kernels))
    assert blas.columns_are_unlike() == expected
    monkeypatch.setattr(blas, "find", lambda: None)
    assert not blas.columns_are_unlike()
