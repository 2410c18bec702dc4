"""The geometry of pooling, and how it is cut into blocks of planes and tiles.

Arrays are x (N, C, *S) and y (N, C, *P), in any memory order. Every output is worked out from its own
window alone, so nothing depends on the blocks; they only keep temporaries small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import SCRATCH_BYTES
from engine.geometry import Axis, Tile, Windows, as_slices, block_tile, even, ranges, tiles
from engine.kernels.patches import within
from engine.kernels.pools import handing
from engine.kernels.pools.reducing import FEWER
from engine.kernels.pools.stages import held
from engine.kernels.pools.windows import even_size, short
from engine.kernels.pools.winners import FEW, FEW_BESIDE
from engine.threads import for_each

Array = NDArray[Any]

BLOCK = 1 << 18
"""Inputs that a block reads: in float32 about a core's second-level cache."""

MOST_BLOCKS = 2
"""Blocks of values that a tile holds at most where borders, or windows that overlap, make it larger than
planned: finding where maxima stand takes up to 19 bytes for each."""

HELD_BYTES = 48
"""Bytes for each input of a block at most: 38 of `MOST_BLOCKS` where maxima stand, a value, and masks."""

LEAST_RUN = 16
"""Channels of a position, where they come last, that a call of NumPy passes over well at a time."""

RUN_BLOCKS = 2
"""Blocks that are one where each call reads long runs: calls go fast there, and threads wait at each."""

WHOLE_BLOCKS = 8
"""Blocks that are one where nothing is held for their inputs and each plane has one result."""

FEW_RESULTS = 16
"""Inputs of a plane from which its one result is little beside them."""

VISITING = 15
"""Work that takes as long as one input of one window: two blocks are worth two threads, as their calls
pass over some hundred thousand numbers each."""


@dataclass(frozen=True)
class Pooling:
    """A pooling layer's windows along each spatial axis; all integers, no samples."""

    axes: tuple[Windows, ...]
    channels: int
    channels_last: bool = False

    @property
    def positions(self) -> tuple[int, ...]:
        """Output positions along each axis."""
        return tuple(axis.out for axis in self.axes)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Input positions along each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def fixed_axes(self) -> tuple[Axis, ...]:
        """The axes, windows of one size along each: what all pools have but adaptive ones."""
        axes = tuple(axis for axis in self.axes if isinstance(axis, Axis))
        assert len(axes) == len(self.axes)
        return axes

    @cached_property
    def tapped_axes(self) -> tuple[Axis, ...] | None:
        """The axes, if they are fixed windows of few enough taps to look at each by itself.

        Not where the scratch has no room for a window of one plane, gaps and padding included: it is
        laid out whole.
        """
        axes = tuple(axis for axis in self.axes if short(axis))
        most = FEW_BESIDE if all(map(even_size, axes)) else FEW
        if len(axes) < len(self.axes) or prod(axis.kernel for axis in axes) > most:
            return None
        return axes if handing.room(axes, ((0, 1),) * len(axes), 1, 8) <= SCRATCH_BYTES else None

    @cached_property
    def channel_run_axes(self) -> tuple[Axis, ...] | None:
        """The axes, if windows are few taps that pass over all channels of a position, a long run."""
        return self.tapped_axes if self.channels_last and self.channels >= LEAST_RUN else None

    @cached_property
    def overlapping_axes(self) -> tuple[Axis, ...] | None:
        """The axes, if windows share inputs: those are worth laying out for each tap to pass over.

        Not where they are long runs, which taps pass over where they lie.
        """
        axes = None if self.channel_run_axes else self.tapped_axes
        return axes if axes and any(axis.stride < axis.extent for axis in axes) else None

    @cached_property
    def is_global(self) -> bool:
        """Whether one window is all of the input, and reads each number of it once."""
        return all(axis.out == 1 and even_size(axis) for axis in self.axes)

    @cached_property
    def unlike(self) -> bool:
        """Whether windows along any axis differ in their sizes."""
        return any(not isinstance(axis, Axis) and not even_size(axis) for axis in self.axes)

    @cached_property
    def joined(self) -> int:
        """Blocks that are one where windows differ, and pass over all channels of a position, a long run.

        All that is held is what the first axis leaves, which is left to the last where sums are spread, as
        inputs are not laid out again from so many channels on.
        """
        if not (self.unlike and self.channels_last and self.channels >= FEWER):
            return 1
        first = self.axes[0]
        return max(1, min(WHOLE_BLOCKS, RUN_BLOCKS * first.size // first.out))

    @property
    def visits(self) -> int:
        """Window members of one sample: what a reduction without tricks would read."""
        return self.channels * prod(axis.visits for axis in self.axes)

    @cached_property
    def stage_values(self) -> int:
        """Values that the reduction of one plane holds at its largest stage.

        An axis of long windows that overlap is laid out window after window. Where outputs are more than
        inputs, whichever axes are reduced first, stages are larger than what they read.
        """
        stages = [
            prod(before[:axis]) * prod(after[axis:])
            for before, after in permutations((self.inputs, self.positions))
            for axis in range(len(self.axes) + 1)
        ]
        most, reduced = max(stages), 1
        for axis, windows in reversed(list(enumerate(self.axes))):
            if not short(windows):
                most = max(most, prod(self.inputs[:axis]) * windows.visits * reduced)
            reduced *= windows.out
        return most

    @property
    def block_count(self) -> int:
        """About how many blocks one sample is cut into."""
        return -(-self.channels * self.stage_values // BLOCK)

    @property
    def workspace_bytes(self) -> int:
        """Temporaries of one thread: values, positions and masks of a block, or of one window."""
        window = prod(min(axis.extent, axis.size) for axis in self.axes)
        return HELD_BYTES * max(BLOCK, window)

    def inner(self, *, copied: bool) -> int:
        """Channels of a position that are taken together, where they come last; else 1.

        All of them, unless one window of all is more than a tile may hold.
        """
        if not self.channels_last:
            return 1
        if self._small:
            return self.channels
        return even(self.channels, MOST_BLOCKS * BLOCK // self._held((1,) * len(self.axes), copied))

    def tiles(self, blocks: int = 1, *, copied: bool = False) -> Iterator[Tile]:
        """Tiles of outputs whose windows together hold about BLOCK inputs, or some times as many.

        `copied` says that values are held for every input.
        """
        if self._small:
            return tiles(self.positions, self.positions)
        inner = self.inner(copied=copied)
        ratio = max(1, -(-self.stage_values // prod(self.positions))) * inner
        most = max(1, blocks * BLOCK // ratio)
        tile = block_tile(self.positions, most)
        while most > 1 and self._held(tile, copied) * inner > MOST_BLOCKS * BLOCK:
            most //= 2
            tile = block_tile(self.positions, most)
        return tiles(self.positions, tile)

    @cached_property
    def _small(self) -> bool:
        """Whether a sample fits whole: to look at its tiles would take as long as pooling it."""
        most = max(self.stage_values, self._held(self.positions, copied=True))
        return self.channels * most <= BLOCK

    def _held(self, tile: tuple[int, ...], copied: bool) -> int:
        """Values of one channel that are held for so many outputs along each axis."""
        return held(self.axes, tile, copied=copied)

    def plane_blocks(
        self, samples: int, blocks: int = 1, *, copied: bool = False, together: bool = False
    ) -> Iterator[tuple[slice, slice]]:
        """Blocks of samples and channels of about BLOCK inputs together, or some times as many.

        Some more if they have one sum each and nothing is held for their inputs. Channels that come last
        are not cut where they are taken `together`, whatever tiles hold.
        """
        if not copied and self.is_global and self.stage_values >= FEW_RESULTS:
            blocks = WHOLE_BLOCKS
        most = max(1, BLOCK * blocks // self.stage_values)
        inner = self.channels if together else self.inner(copied=copied)
        each = inner if self.channels_last else most
        parts = -(-self.channels // each)
        alike = max(1, most // self.channels) if parts == 1 else 1
        cuts = product(ranges(samples, alike), ranges(self.channels, -(-self.channels // parts)))
        return ((slice(*n), slice(*c)) for n, c in cuts)

    def read(self, tile: Tile) -> tuple[tuple[int, int], ...]:
        """The inputs that a tile reads along each axis."""
        return tuple(axis.inputs_of(*span) for axis, span in zip(self.axes, tile, strict=True))


Planes = tuple[slice, slice]
Blocks = tuple[list[Tile], list[Planes]]
"""Tiles of outputs, and blocks of samples and channels to take them from."""


def for_each_plane(
    p: Pooling,
    samples: int,
    function: Callable[[slice, slice], None],
    blocks: int = 1,
    *,
    copied: bool = False,
) -> None:
    """Call `function(n, c)` for blocks of planes that do not overlap; see `Pooling.plane_blocks`."""
    for_each_block(p, samples, p.plane_blocks(samples, blocks, copied=copied), function)


def for_each_block(
    p: Pooling, samples: int, blocks: Iterable[tuple[Any, ...]], function: Callable[..., None]
) -> None:
    """Call `function(*block)` for blocks that hold so many samples together, and share nothing."""
    for_each(function, blocks, VISITING * samples * p.visits)


def reduced_along(
    step: Callable[..., Array],
    p: Pooling,
    x: Array,
    tile: Tile,
    prepare: Callable[[Array], Array] | None = None,
    **last: Array,
) -> Array:
    """Reduce a tile of the planes x (n, c, *S), after `prepare`, by one step for each axis.

    The first axis comes first: whole rows are reduced in vectors, and fewer numbers of a row by turns are
    left for the last one, which takes NumPy four times as long. `last` goes to the last step.
    """
    read = p.read(tile)
    values = x[within(as_slices(read))]
    if prepare is not None:
        values = prepare(values)
    # Windows of one input leave it as it is: a step would only copy.
    *before, end = [axis for axis, w in enumerate(p.axes) if even_size(w) != 1] or [len(p.axes) - 1]
    for axis in before:
        values = step(values, 2 + axis, p.axes[axis], tile[axis], read[axis][0])
    return step(values, 2 + end, p.axes[end], tile[end], read[end][0], **last)


def stored(p: Pooling, a: Array) -> Array:
    """A view (n, c, *S, 1), or (n, *S, c) where channels come last: the order in memory."""
    return a.transpose(0, *range(2, a.ndim), 1) if p.channels_last else a[..., None]


def canonical(p: Pooling, a: Array) -> Array:
    """The view (n, c, *S) of what `stored` made."""
    return np.moveaxis(a, -1, 1) if p.channels_last else a[..., 0]


def clear(p: Pooling, tile: Tile, dx: Array) -> None:
    """Zero what no tile before this one has."""
    if any(span != (0, axis.out) for span, axis in zip(tile[1:], p.axes[1:], strict=True)):
        if all(lo == 0 for lo, _ in tile):
            dx[...] = 0
        return
    axis, (lo, hi) = p.axes[0], tile[0]
    start = axis.inputs_of(lo - 1, lo)[1] if lo else 0
    stop = axis.inputs_of(hi - 1, hi)[1] if hi < axis.out else axis.size
    dx[:, :, start:stop] = 0
