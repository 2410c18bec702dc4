"""Sums over samples that keep requests apart.

Samples of several requests lie one after another. A request's samples are summed in blocks counted
from its own first sample, so its sum has one order whoever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, product
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES
from engine.geometry import even, ranges
from engine.kernels.row_sums import ROWS, SAMPLE_PART, sums_over_rows

Array = NDArray[Any]
Piece = TypeVar("Piece")

SHARES = 4
"""Parts into which the sums of a request are cut, for threads to share."""

RequestBlock = tuple[slice, slice, int]
"""Requests, their samples in this block, and how many samples each of them has in it."""


def samples_of(rows: Sequence[int]) -> list[slice]:
    """The samples of each request."""
    return [slice(end - count, end) for count, end in zip(rows, accumulate(rows), strict=True)]


def request_blocks(rows: Sequence[int], samples: int) -> tuple[tuple[RequestBlock, ...], ...]:
    """Cut a batch into blocks of about `samples` samples.

    Requests of equal size share a block where several fit. Blocks in one tuple belong to the same
    requests and must run in order; different tuples are independent.
    """
    return _request_blocks(tuple(rows), samples)


@lru_cache(maxsize=1024)
def _request_blocks(rows: tuple[int, ...], samples: int) -> tuple[tuple[RequestBlock, ...], ...]:
    return tuple(_cut(rows, samples))


def _cut(rows: tuple[int, ...], samples: int) -> Iterator[tuple[RequestBlock, ...]]:
    request = start = 0
    while request < len(rows):
        each = rows[request]
        if each > samples:
            yield tuple(
                (slice(request, request + 1), slice(start + lo, start + hi), hi - lo)
                for lo, hi in ranges(each, even(each, samples))
            )
            request, start = request + 1, start + each
            continue
        last = request + 1
        while last < len(rows) and rows[last] == each and (last + 1 - request) * each <= samples:
            last += 1
        end = start + (last - request) * each
        if each:
            yield ((slice(request, last), slice(start, end), each),)
        request, start = last, end


def in_shares(pieces: Sequence[Piece], shares: int) -> list[Sequence[Piece]]:
    """Cut a request's pieces, in their order, into at most `shares` parts about alike."""
    each = max(1, -(-len(pieces) // shares))
    return [pieces[lo:hi] for lo, hi in ranges(len(pieces), each)]


def request_shares(
    rows: Sequence[int], cuts: Sequence[Piece], shares: int
) -> Iterator[tuple[int, int, Sequence[tuple[int, Piece]]]]:
    """Every share of every request: the request, the share's number, and its pieces (sample, cut).

    All samples are cut alike, and a request's pieces go sample by sample.
    """
    for request, own in enumerate(samples_of(rows)):
        pieces = list(product(range(own.start, own.stop), cuts))
        for share, part in enumerate(in_shares(pieces, shares)):
            yield request, share, part


def at_once(rows: Sequence[int], held: int) -> Iterator[tuple[slice, slice]]:
    """Requests, and their samples, of as many at once as hold a part of the scratch's bytes together.

    Sums of many requests at once would be more than a plan counts, which is those of one.

    Args:
        held: bytes that each request holds.
    """
    samples = samples_of(rows)
    for lo, hi in ranges(len(rows), max(1, PART_BYTES // max(1, held))):
        yield slice(lo, hi), slice(samples[lo].start, samples[hi - 1].stop)


def add_shares(sums: Array) -> Array:
    """Add the shares of each request (R, shares, ...) in their order: (R, ...), in the first one's memory.

    To add up where results lie in another order would take longer than the copy.
    """
    total: Array = sums[:, 0]
    for share in range(1, sums.shape[1]):
        total += sums[:, share]
    return total


def sum_samples(values: Array, each: int) -> Array:
    """Sum (r·each, ...) over each request's samples: (r, ...)."""
    if each == 1:
        return values
    return np.add.reduce(values.reshape(-1, each, *values.shape[1:]), axis=1)


def sum_by_request(
    values: Array, rows: Sequence[int], out: Array, *, channels_last: bool = False
) -> None:
    """Write to `out` (R, C) the sums of `values` (N, C, *S) over S and over each request's samples.

    Where `channels_last`, values are (N, *S, C).
    """
    channels, held = out.shape[1], out[:1].nbytes
    summed: Callable[[Array], Array]
    if channels_last:
        values = values.reshape(len(values), prod(values.shape[1:-1]), channels)
        held += min(SAMPLE_PART, values[:1].size) // ROWS * values.itemsize
        summed = sums_over_rows
    else:
        summed = partial(np.add.reduce, axis=tuple(range(2, values.ndim)))
    # The sums over S of many samples would be more than a plan counts, where S is small.
    samples = max(1, min(1024, PART_BYTES // max(1, held)))
    out[...] = 0
    for batch in request_blocks(rows, samples):
        for requests, block, each in batch:
            out[requests] += sum_samples(summed(values[block]), each)


def average_by_request(sums: Array, rows: Sequence[int]) -> None:
    """Divide sums (R, ...) over each request's samples by how many these are."""
    # No samples, no gradient: the sum is 0 and stays it.
    samples = np.maximum(rows, 1).astype(sums.dtype)
    sums /= samples.reshape(-1, *(1,) * (sums.ndim - 1))
