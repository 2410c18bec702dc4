"""Which strided layers make all residues from one set of copies, and how these are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.geometry import Axis
from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.direct import interleaving
from tests.engine.kernels.images import image

EVEN = Axis(16, 4, 2, 1, 1, 1, 8)
"""Four taps at stride 2: three shifts of eight inputs of each residue."""


def even(**change: Any) -> Correlation:
    return replace(Correlation((EVEN, EVEN), 1, 7, 5, "zeros", 4), **change)


def test_two_threads_share_a_sample_by_bands_or_by_work() -> None:
    large = image((128, 128), (4, 4), (1, 1), (2, 2), itemsize=4, groups=1, channels=64, outputs=64)
    assert 1 < -(-64 // interleaving.band(large)) < 64
    assert interleaving.shares(large) == ((0, 1, 2, 3),)
    small = image((28, 28), (3, 3), (1, 1), (2, 2), itemsize=4, groups=1, channels=128, outputs=128)
    assert interleaving.band(small) == 14
    # Of one tap, twice two, and four.
    work = [phase.work for phase in interleaving.phases(small)]
    assert sorted(work) == [128, 256, 256, 512]
    halves = [sum(work[n] for n in share) for share in interleaving.shares(small)]
    assert sorted(halves) == [512, 640]
    line = image((8000,), (8,), (2, 2), (4,), itemsize=4, groups=1, channels=64, outputs=64)
    assert 1 < -(-2000 // interleaving.band(line)) < 20
    assert interleaving.shares(line) == ((0, 1, 2, 3),)


def test_what_shifts_read_is_counted_along_each_axis() -> None:
    c = even()
    volume = replace(c, axes=(EVEN,) * 3)
    assert interleaving.extents(volume, 2) == (2, 10, 8)
    # To the last input of the second plane, 7 rows and 7 inputs on.
    assert interleaving.columns(volume, 2) == 80 + 7 * 8 + 8
    assert interleaving.extents(c, 3) == (3, 8)
    assert interleaving.columns(c, 3) == 24
    line = replace(c, axes=(EVEN,))
    assert interleaving.extents(line, 5) == (5,)
    assert interleaving.columns(line, 5) == 5
    assert [phase.starts for phase in interleaving.phases(line)] == [(0,), (0,)]
    starts = {start for phase in interleaving.phases(volume) for start in phase.starts}
    assert starts == {80 * d + 8 * h for d in range(3) for h in range(3)}


def test_bands_are_as_high_as_copies_and_sums_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    c = even()
    volume, line = replace(c, axes=(EVEN,) * 3), replace(c, axes=(EVEN,))
    # A row of copies, for three shifts and five filters of float32.
    row = 3 * 5 * 4
    for layer, places, more in ((c, 8, 2), (volume, 80, 2), (line, 1, 0)):
        interleaving.band.cache_clear()
        monkeypatch.setattr(interleaving, "BAND_BYTES", row * places * (4 + more))
        assert interleaving.band(layer) == 4
        interleaving.band.cache_clear()
        monkeypatch.setattr(interleaving, "BAND_BYTES", row * places * (4 + more) - 1)
        assert interleaving.band(layer) == 3  # of eight, as even as can be
        assert interleaving.copied(layer, 3)[0] == 3 + more
    interleaving.band.cache_clear()


@pytest.mark.parametrize("columns", [1023, 1024])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_two_threads_have_a_band_each_where_products_are_long(axes: int, columns: int) -> None:
    last = Axis(4 * columns, 4, 2, 1, 1, 1, 2 * columns)
    two = Axis(4, 4, 2, 1, 1, 1, 2)
    half, flat = Axis(2 * columns, 4, 2, 1, 1, 1, columns), Axis(2, 2, 2, 1, 0, 0, 1)
    c = even(axes=[(last,), (two, half), (two, flat, half)][axes - 1])
    c = replace(c, channels=128 if axes == 1 else 32, outputs=8)
    whole = interleaving.shared(c)[0].length
    assert interleaving.band(c) == (whole // 2 if columns == 1024 else whole)
    # By rows of too much work for one, halves of the residues are shared instead.
    assert len(interleaving.shares(c)) == (1 if columns == 1024 else 2)
    little = replace(c, channels=1, outputs=1)
    assert interleaving.band(little) == whole
    assert len(interleaving.shares(little)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"groups": 2},
        {"mode": "reflect"},
        {"axes": (Axis(16, 3, 2, 2, 1, 1, 7),) * 2},
        {"axes": (Axis(16, 3, 1, 1, 1, 1, 16),) * 2},
        {"outputs": 100_000},
        {"channels": 100_000},
        {"axes": (Axis(1, 2, 3, 1, 2, 3, 2), EVEN)},
        {"axes": (Axis(650, 65, 65, 1, 0, 0, 10),)},
    ],
    ids=[
        "groups",
        "padding",
        "dilation",
        "stride 1",
        "copies beyond the scratch",
        "sums beyond it",
        "no taps",
        "many residues",
    ],
)
def test_others_are_left_to_others(change: dict[str, Any]) -> None:
    c = even()
    assert interleaving.suits(c)
    assert not interleaving.suits(replace(c, **change))


FIFTEEN = Axis(30, 4, 2, 1, 1, 1, 15)
FORTY = Axis(80, 4, 2, 1, 1, 1, 40)

LARGE: dict[str, Correlation] = {
    "image": even(channels=32, outputs=64, axes=(FORTY, FORTY)),
    "image with channels last": even(
        channels=64, outputs=64, axes=(FORTY, FORTY), channels_last=True
    ),
    "line": even(channels=64, outputs=64, axes=(Axis(3200, 4, 2, 1, 1, 1, 1600),)),
    "line with channels last": even(
        channels=64, outputs=64, axes=(Axis(3200, 4, 2, 1, 1, 1, 1600),), channels_last=True
    ),
    "volume": even(channels=64, outputs=64, axes=(EVEN,) * 3),
    "volume with channels last": even(
        channels=64, outputs=64, axes=(EVEN,) * 3, channels_last=True
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_layers_of_much_work_go_so(name: str) -> None:
    c = LARGE[name]
    assert dispatch.input_kernel(c) is dispatch._interleaved
    assert dispatch.adjoint_algorithm(c) == "direct"
    assert dispatch.adjoint_goes_tap_by_tap(replace(c, taps_apart=True)) == c.channels_last
    assert not dispatch.adjoint_goes_tap_by_tap(replace(c, taps_apart=False))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("image", {"outputs": 15, "channels": 256}),
        ("image", {"outputs": 513}),
        ("image", {"axes": (EVEN, EVEN), "channels": 512, "outputs": 64}),
        ("image", {"channels": 15}),
        ("image", {"axes": (FIFTEEN, FIFTEEN), "channels": 217}),
        ("image with channels last", {"channels": 15}),
        ("line", {"channels": 29}),
        ("line with channels last", {"channels": 29}),
        ("volume", {"channels": 11}),
        ("volume", {"channels": 65}),
        ("volume", {"axes": (EVEN, EVEN, Axis(10, 4, 2, 1, 1, 1, 5)), "channels": 128}),
    ],
)
def test_others_go_by_residues(name: str, change: dict[str, Any]) -> None:
    c = replace(LARGE[name], **change)
    assert interleaving.suits(c)
    assert dispatch.input_kernel(c) is not dispatch._interleaved


def test_many_filters_are_read_by_rows_with_channels_last() -> None:
    c = replace(LARGE["image with channels last"], outputs=513)
    assert dispatch.input_kernel(c) is dispatch._interleaved


def test_a_large_volume_may_have_more_channels_than_filters() -> None:
    c = even(channels=65, outputs=64, axes=(Axis(32, 4, 2, 1, 1, 1, 16),) * 3)
    assert dispatch.input_kernel(c) is dispatch._interleaved
