"""Window arithmetic against brute force over every position."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.geometry import (
    Adaptive,
    Axis,
    block_tile,
    blocking,
    even,
    halved,
    lengths,
    ranges,
    row_major,
    same_padding,
    strided_out,
    tiles,
)


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    size, kernel = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    low, high = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    out = strided_out(size, dilation * (kernel - 1) + 1, stride, low, high, draw(st.booleans()))
    return Axis(size, kernel, stride, dilation, low, high, max(out, 1))


@given(axes(), st.data())
def test_outputs_of_a_tap_are_those_that_read_a_real_input(axis: Axis, data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, axis.out - 1))
    hi = data.draw(st.integers(lo + 1, axis.out))
    tap = data.draw(st.integers(0, axis.kernel - 1))
    reading = [o for o in range(lo, hi) if 0 <= axis.input_of(tap, o) < axis.size]
    start, stop = axis.outputs_of(tap, lo, hi)
    assert list(range(start, stop)) == reading
    assert lo <= start <= stop <= hi


@given(axes())
def test_inputs_of_a_tile_hold_every_input_it_reads(axis: Axis) -> None:
    start, stop = axis.inputs_of(0, axis.out)
    read = {axis.input_of(t, o) for t in range(axis.kernel) for o in range(axis.out)}
    assert {i for i in read if 0 <= i < axis.size} <= set(range(start, stop))
    assert 0 <= start <= stop <= axis.size


@given(st.integers(1, 40), st.integers(1, 60))
def test_adaptive_windows_in_closed_form(size: int, out: int) -> None:
    axis = Adaptive(size, out)
    windows = [axis.window(o) for o in range(out)]
    assert windows[0][0] == 0
    assert windows[-1][1] == size
    assert axis.visits == sum(hi - lo for lo, hi in windows)
    assert axis.extent == max(hi - lo for lo, hi in windows)


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 5))
def test_same_padding_keeps_ceil_of_the_quotient(size: int, extent: int, stride: int) -> None:
    low, high = same_padding(size, extent, stride, lower=False)
    assert strided_out(size, extent, stride, low, high) == -(-size // stride)
    assert high - low in (0, 1)
    assert same_padding(size, extent, stride, lower=True) == (high, low)


@given(axes())
def test_a_last_window_of_ceil_mode_starts_inside(axis: Axis) -> None:
    given = axis.size, axis.extent, axis.stride, axis.low, axis.high
    out, floor = strided_out(*given, ceil=True), strided_out(*given)
    assert out <= floor + 1
    if out > 0:
        assert (out - 1) * axis.stride - axis.low < axis.size
    # The next window would start beyond the input, or end where windows reach the padding's end.
    beyond = out * axis.stride - axis.low >= axis.size
    assert beyond or (out - 1) * axis.stride + axis.extent >= axis.size + axis.low + axis.high


@pytest.mark.parametrize(
    ("size", "extent", "stride", "low", "high", "out"),
    [
        (6, 1, 1, 0, 2, 6),  # two windows would start in the high padding
        (6, 1, 1, 2, 2, 8),  # windows that start in the low padding stay
        (5, 2, 3, 0, 9, 2),
        (7, 2, 3, 0, 0, 3),  # the last window reaches past the end
        (8, 3, 4, 0, 0, 2),
        (1, 5, 2, 0, 1, 0),  # not even one
    ],
)
def test_no_window_of_ceil_mode_starts_in_the_high_padding(
    size: int, extent: int, stride: int, low: int, high: int, out: int
) -> None:
    assert strided_out(size, extent, stride, low, high, ceil=True) == out


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(1, 30),
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 8),
    st.integers(100, 5000),
    st.integers(1, 500),
)
def test_blocks_fit_their_capacity(
    out: list[int],
    taps: int,
    channels: int,
    other: int,
    groups: int,
    capacity: int,
    widest: int,
) -> None:
    b = blocking(out, taps, channels, other, groups, capacity, widest)
    assert prod(b.tile) <= widest
    one = max(b.channels * taps, other)
    assert prod(b.tile) * one <= capacity or (prod(b.tile) == 1 and (b.channels == 1 or other > 1))
    if prod(b.tile) > 1:
        assert b.samples * b.groups * prod(b.tile) * one <= capacity
    assert 1 <= b.channels <= channels
    assert 1 <= b.groups <= groups
    assert b.samples == 1 or b.groups == groups


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 20))
def test_tiles_cover_every_output_once(out: list[int], width: int) -> None:
    tile = block_tile(out, width)
    assert prod(tile) <= width
    seen: dict[tuple[int, ...], int] = {}
    for spans in tiles(out, tile):
        block: list[tuple[int, ...]] = [()]
        for lo, hi in spans:
            block = [(*head, i) for head in block for i in range(lo, hi)]
        for place in block:
            seen[place] = seen.get(place, 0) + 1
    assert len(seen) == prod(out)
    assert set(seen.values()) == {1}


def test_ranges_end_with_a_shorter_one() -> None:
    assert ranges(7, 3) == ((0, 3), (3, 6), (6, 7))
    assert ranges(0, 3) == ()


@given(st.integers(0, 40), st.integers(1, 12))
def test_lengths_are_those_of_the_ranges(size: int, step: int) -> None:
    assert lengths(size, step) == {stop - start for start, stop in ranges(size, step)}


@pytest.mark.parametrize(
    ("start", "stop", "inputs", "places"),
    [
        (-2, 3, (0, 3), (2, 5)),
        (4, 9, (4, 6), (0, 2)),
        (-3, -1, (0, 0), (3, 3)),
        (7, 9, (7, 7), (0, 0)),
    ],
)
def test_placed(start: int, stop: int, inputs: tuple[int, int], places: tuple[int, int]) -> None:
    axis = Axis(6, 3, 1, 1, 0, 0, 4)
    assert axis.placed(start, stop) == (slice(*inputs), slice(*places))


def test_row_major_steps_are_those_of_an_array() -> None:
    for sizes in ((), (5,), (2, 3), (4, 1, 7)):
        assert row_major(sizes) == np.zeros(sizes, np.int8).strides


@given(st.integers(1, 7), st.integers(1, 6), st.integers(1, 6))
def test_an_input_is_seen_by_as_many_outputs_as_lie_between_the_first_and_the_last(
    kernel: int, stride: int, dilation: int
) -> None:
    out = 2 * kernel * dilation + 2 * stride
    size = (out - 1) * stride + dilation * (kernel - 1) + 1
    axis = Axis(size, kernel, stride, dilation, 0, 0, out)
    readers: dict[int, list[int]] = {}
    for output in range(out):
        for tap in range(kernel):
            readers.setdefault(axis.input_of(tap, output), []).append(output)
    assert axis.sight == max(max(seen) - min(seen) + 1 for seen in readers.values())


@pytest.mark.parametrize(
    ("size", "most", "each"),
    [(10, 4, 4), (9, 4, 3), (8, 4, 4), (3, 4, 3), (7, 1, 1), (0, 4, 1), (5, 0, 1)],
)
def test_even_cuts_are_as_few_as_can_be_and_alike(size: int, most: int, each: int) -> None:
    assert even(size, most) == each


@given(st.integers(1, 300), st.integers(1, 50))
def test_even_cuts_are_no_more_than_the_longest_ones(size: int, most: int) -> None:
    each = even(size, most)
    assert each <= most
    cuts = [hi - lo for lo, hi in ranges(size, each)]
    assert len(cuts) == len(ranges(size, most))
    assert max(cuts) == min(most, -(-size // len(cuts)))


@pytest.mark.parametrize(
    ("total", "lower", "pads"), [(5, False, (2, 3)), (5, True, (3, 2)), (4, True, (2, 2))]
)
def test_an_odd_pixel_of_padding_goes_to_one_end(
    total: int, lower: bool, pads: tuple[int, int]
) -> None:
    assert halved(total, lower) == pads
