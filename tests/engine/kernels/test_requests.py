"""Sums over samples keep requests apart, in an order of their own."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.arena import PART_BYTES
from engine.kernels.requests import (
    add_shares,
    at_once,
    average_by_request,
    in_shares,
    request_blocks,
    request_shares,
    samples_of,
    sum_by_request,
    sum_samples,
)

ROWS = st.lists(st.integers(0, 9), min_size=1, max_size=12)


@given(ROWS, st.integers(1, 7))
def test_blocks_cover_every_sample_of_its_request_once(rows: list[int], samples: int) -> None:
    owner = np.repeat(np.arange(len(rows)), rows)
    seen = np.zeros(len(owner), int)
    for batch in request_blocks(rows, samples):
        for requests, block, each in batch:
            seen[block] += 1
            owners = np.repeat(np.arange(requests.start, requests.stop), each)
            assert np.array_equal(owner[block], owners)
            assert block.stop - block.start <= max(samples, each)
    assert (seen == 1).all()


@given(ROWS, st.integers(1, 7))
def test_a_request_is_cut_alike_alone_and_in_a_batch(rows: list[int], samples: int) -> None:
    starts = np.cumsum(rows) - rows
    cuts: dict[int, list[tuple[int, int]]] = {i: [] for i in range(len(rows))}
    for batch in request_blocks(rows, samples):
        for requests, block, each in batch:
            for place, request in enumerate(range(requests.start, requests.stop)):
                lo = block.start + place * each - starts[request]
                cuts[request].append((int(lo), int(lo) + each))
    for request, count in enumerate(rows):
        alone = [
            (block.start, block.stop)
            for batch in request_blocks([count], samples)
            for _, block, _ in batch
        ]
        assert cuts[request] == alone


@given(ROWS, st.integers(1, 4))
def test_sums_have_the_same_bits_alone_and_in_a_batch(rows: list[int], width: int) -> None:
    rng = np.random.default_rng(sum(rows))
    values = rng.standard_normal((sum(rows), width)).astype(np.float32)
    out = np.empty((len(rows), width), np.float32)
    sum_by_request(values, rows, out)
    start = 0
    for request, count in enumerate(rows):
        alone = np.empty((1, width), np.float32)
        sum_by_request(values[start : start + count], [count], alone)
        assert np.array_equal(out[request], alone[0])
        np.testing.assert_allclose(
            alone[0], values[start : start + count].sum(0, np.float64), rtol=1e-5, atol=1e-6
        )
        start += count


@pytest.mark.parametrize("rows", [[5000], [700, 700, 3600], [1] * 9])
def test_sums_over_places_hold_few_samples_at_once(rows: list[int]) -> None:
    values = np.ones((sum(rows), 1000, 1), np.float32)
    values[:, :, 0] = np.arange(1000)
    out = np.empty((len(rows), 1000), np.float32)
    sum_by_request(values[:1], [1], out[:1])  # what is made once
    tracemalloc.start()
    sum_by_request(values, rows, out)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.1 * PART_BYTES
    np.testing.assert_array_equal(out, np.outer(rows, np.arange(1000)))


@given(ROWS, st.integers(1, 4), st.integers(1, 300))
def test_sums_of_channels_last_have_the_same_bits_alone_and_in_a_batch(
    rows: list[int], width: int, places: int
) -> None:
    rng = np.random.default_rng(sum(rows))
    values = rng.standard_normal((sum(rows), places, 2, width)).astype(np.float32)
    out = np.empty((len(rows), width), np.float32)
    sum_by_request(values, rows, out, channels_last=True)
    for request, own in enumerate(samples_of(rows)):
        alone = np.empty((1, width), np.float32)
        sum_by_request(values[own], [rows[request]], alone, channels_last=True)
        assert np.array_equal(out[request], alone[0])
        exact = values[own].sum((0, 1, 2), np.float64)
        np.testing.assert_allclose(alone[0], exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "sizes"), [([5000], (1, 1)), ([40, 24], (100, 61)), ([1], (3000, 900))]
)
def test_sums_of_channels_last_hold_few_samples_at_once(
    rows: list[int], sizes: tuple[int, int]
) -> None:
    values = np.ones((sum(rows), *sizes, 7), np.float32)
    out = np.empty((len(rows), 7), np.float32)
    sum_by_request(values[:1, :1], [1], out[:1], channels_last=True)  # what is made once
    tracemalloc.start()
    sum_by_request(values, rows, out, channels_last=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.5 * PART_BYTES
    np.testing.assert_array_equal(
        out, np.repeat(np.array(rows) * sizes[0] * sizes[1], 7).reshape(-1, 7)
    )


@pytest.mark.parametrize("shape", [(1, 224, 224, 16), (1, 1000, 500, 2), (3, 300, 300, 3)], ids=str)
def test_gradients_of_the_bias_are_as_exact_with_channels_last(shape: tuple[int, ...]) -> None:
    dy = np.random.default_rng(0).standard_normal(shape).astype(np.float32) + np.float32(1)
    channels = shape[-1]
    given = {"x": dy[..., :1], "weight": np.zeros((1, 1, 1, channels), np.float32), "dy": dy}
    got = engine.backward(
        "conv", {"layout": "NHWC"}, wants=["dbias"], bias=np.zeros(channels, np.float32), **given
    )
    np.testing.assert_allclose(got["dbias"], dy.sum((0, 1, 2), np.float64), rtol=7e-7)


@given(st.lists(st.integers(), max_size=20), st.integers(1, 6))
def test_shares_are_the_pieces_in_their_order(pieces: list[int], shares: int) -> None:
    cut = in_shares(pieces, shares)
    assert [piece for share in cut for piece in share] == pieces
    assert len(cut) <= shares
    assert max(map(len, cut), default=0) <= -(-len(pieces) // shares)


@given(ROWS)
def test_the_samples_of_a_request_follow_those_before_it(rows: list[int]) -> None:
    owner = np.repeat(np.arange(len(rows)), rows)
    assert [list(owner[own]) for own in samples_of(rows)] == [[n] * c for n, c in enumerate(rows)]


@given(ROWS, st.integers(1, 3), st.integers(1, 6))
def test_the_shares_of_a_request_are_its_own_and_alike_alone_and_in_a_batch(
    rows: list[int], cuts: int, shares: int
) -> None:
    found = list(request_shares(rows, range(cuts), shares))
    for request, own in enumerate(samples_of(rows)):
        parts = [(share, part) for n, share, part in found if n == request]
        assert [share for share, _ in parts] == list(range(len(parts)))
        assert len(parts) <= shares
        pieces = [piece for _, part in parts for piece in part]
        assert pieces == [(n, cut) for n in range(own.start, own.stop) for cut in range(cuts)]
        alone = list(request_shares([rows[request]], range(cuts), shares))
        moved = [[(own.start + n, cut) for n, cut in part] for _, _, part in alone]
        assert moved == [part for _, part in parts]
    assert [request for request, _, _ in found] == sorted(request for request, _, _ in found)


def test_one_sample_is_no_copy() -> None:
    values = np.ones((3, 2))
    assert sum_samples(values, 1) is values


def test_averages_are_over_the_samples_of_each_request() -> None:
    sums = np.array([[3.0, 6], [0, 0], [5, 10]])
    average_by_request(sums, [3, 0, 5])
    np.testing.assert_array_equal(sums, [[1, 2], [0, 0], [1, 2]])


def test_shares_are_added_in_their_order() -> None:
    # In another order the small numbers would not be lost.
    sums = np.array([[1e8, 1, 1, -1e8], [1, 1, 1e8, -1e8]], np.float32)[..., None]
    assert add_shares(sums).tolist() == [[0.0], [0.0]]
    sums = np.array([[1e8, -1e8, 1, 1]], np.float32)[..., None]
    assert add_shares(sums).tolist() == [[2.0]]


@given(ROWS, st.integers(0, PART_BYTES))
def test_as_many_requests_at_once_as_fit(rows: list[int], held: int) -> None:
    samples = samples_of(rows)
    found: list[slice] = []
    for requests, own in at_once(rows, held):
        each = samples[requests]
        assert len(each) == 1 or len(each) * held <= PART_BYTES
        assert own == slice(each[0].start, each[-1].stop)
        found += each
    assert found == samples
