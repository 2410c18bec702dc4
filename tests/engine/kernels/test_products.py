"""Products cut into pieces: the same numbers, every result once, and bits that columns do not share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.geometry import COLUMNS
from engine.kernels import products as module
from engine.kernels.products import (
    IN_PLACE,
    LEAST_ROWS,
    LINE,
    MOST_WEIGHTS,
    STEP,
    multiply,
    pieces,
    products,
    shares,
    tall,
    widest,
)

UNPACKED = 1_000_000


@pytest.fixture(params=[UNPACKED, 0], ids=["in place", "packed"], autouse=True)
def unpacked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """BLAS of either kind, whatever this machine has."""
    monkeypatch.setattr(module, "UNPACKED", request.param)
    _forget()
    yield request.param
    _forget()


def _forget() -> None:
    for cached in (pieces, shares, tall, widest):
        cached.cache_clear()


SHAPES = [
    (1, 1, 1),
    (64, 576, 448),
    (64, 576, 100),
    (67, 129, 201),
    (128, 1152, 70),
    (600, 500, 90),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last", [False, True])
def test_values(shape: tuple[int, int, int], last: bool) -> None:
    rows, depth, columns = shape
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, rows, depth)), rng.standard_normal((3, 2, depth, columns + 5))
    x = x[..., :columns]
    out = np.full((3, 2, columns, rows) if last else (3, 2, rows, columns), np.nan)
    multiply(w, x, out.swapaxes(2, 3) if last else out)
    np.testing.assert_allclose(out.swapaxes(2, 3) if last else out, w @ x, rtol=1e-9, atol=1e-9)


def test_packed_products_are_not_cut(unpacked: int) -> None:
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((1, 64, 576)), rng.standard_normal((2, 1, 576, 448))
    assert (pieces(64, 576, 448) is not None) == bool(unpacked)
    out = np.empty((2, 1, 64, 448))
    multiply(w, x, out, packed=True)
    assert out.tobytes() == np.matmul(w, x).tobytes()


@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_cover_both_axes_and_stay_small(shape: tuple[int, int, int], unpacked: int) -> None:
    rows, depth, columns = shape
    cut = pieces(rows, depth, columns)
    if cut is None:
        small = rows * depth * columns <= unpacked
        assert not unpacked or small or rows * depth > IN_PLACE
        return
    for size, along in zip((rows, columns), cut, strict=True):
        assert [lo for lo, _, _ in along] == [0, *(hi for _, hi, _ in along[:-1])]
        assert along[-1][1] == size
        assert all((hi - lo) % each == 0 for lo, hi, each in along)
    tallest, widest = (max(each for _, _, each in along) for along in cut)
    assert tallest * depth * widest <= UNPACKED
    assert tallest % STEP == 0 or tallest == rows
    assert widest % COLUMNS == 0 or widest == columns


@pytest.mark.parametrize("depth", [16, 64, 144, 256, 400, 1152, 3000])
@pytest.mark.parametrize("outputs", [16, 24, 64, 96, 144, 208, 512])
def test_columns_last_divide_all_and_leave_rows_enough(
    depth: int, outputs: int, unpacked: int
) -> None:
    each = widest(outputs, depth)
    if each == 0:
        return
    assert unpacked
    assert outputs % each == 0 == each % LINE
    assert depth * outputs <= MOST_WEIGHTS
    assert min(outputs, COLUMNS) <= each
    for count in (24, 100, 448, 3136):
        tile = tall(count, each * depth)
        assert tile * each * depth <= UNPACKED
        assert tile % STEP == 0
    assert tall(448, each * depth) >= LEAST_ROWS


@pytest.mark.parametrize(("outputs", "depth", "each"), [(64, 256, 64), (512, 512, 0), (24, 96, 0)])
def test_products_last_are_cut_where_weights_are_few(
    outputs: int, depth: int, each: int, unpacked: int
) -> None:
    each = each if unpacked else 0
    assert widest(outputs, depth) == each
    out = np.empty((1, 1, 448, outputs)).swapaxes(2, 3)
    found = list(products(np.ones((1, outputs, depth)), np.ones((1, 1, depth, 448)), out))
    assert {right.shape[-1] for _, right, _ in found} == {each or outputs}


def test_filters_are_parted_only_where_operands_are_read_in_place(unpacked: int) -> None:
    assert shares(256, 128) == (64 if unpacked else 0)
