"""Window arithmetic on integers: which input positions each output position reads.

One axis at a time; `o`, `i` and `t` count outputs, inputs and taps (positions within a window).
A fixed window reads ``i = o * stride + t * dilation - low``. The formulas are those of Dumoulin and
Visin, "A guide to convolution arithmetic for deep learning" (2016). No array is made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod


@dataclass(frozen=True, slots=True)
class Axis:
    """A fixed window sliding along one axis.

    `size` inputs, padded by `low` and `high`; `out` outputs, which may be fewer or (with ceil mode)
    reach further than the padded input.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    low: int
    high: int
    out: int

    @property
    def extent(self) -> int:
        """Input positions from the first to the last tap of a window."""
        return extent(self.kernel, self.dilation)

    def outputs_of(self, tap: int, lo: int, hi: int) -> tuple[int, int]:
        """The part of the outputs [lo, hi) whose `tap` falls on a real input, as a half-open range."""
        shift = self.low - tap * self.dilation
        first = -(-shift // self.stride)
        last = (self.size - 1 + shift) // self.stride
        start = min(max(lo, first), hi)
        return start, max(start, min(hi, last + 1))

    def input_of(self, tap: int, output: int) -> int:
        """The input position under `tap` of `output`; negative or >= size where it is padding."""
        return output * self.stride + tap * self.dilation - self.low

    def inputs_of(self, lo: int, hi: int) -> tuple[int, int]:
        """The real inputs between the first and the last tap of the outputs [lo, hi)."""
        start = min(max(self.input_of(0, lo), 0), self.size)
        return start, max(start, min(self.input_of(self.kernel - 1, hi - 1) + 1, self.size))

    def placed(self, start: int, stop: int) -> tuple[slice, slice]:
        """The real inputs among the positions [start, stop), and where among them they stand."""
        first = max(0, start)
        last = max(first, min(self.size, stop))
        return slice(first, last), slice(first - start, last - start)

    @property
    def alike(self) -> int:
        """Taps from one to the next that reads the same residue of the inputs modulo the stride."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def sight(self) -> int:
        """Outputs from the first to the last that read one input: what its adjoint sees."""
        last = (self.kernel - 1) // self.alike * self.alike
        return last * self.dilation // self.stride + 1

    @property
    def visits(self) -> int:
        """Taps of all windows together: the work along this axis."""
        return self.out * self.kernel


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Windows [floor(o * size / out), ceil((o + 1) * size / out)) along one axis."""

    size: int
    out: int

    def window(self, output: int) -> tuple[int, int]:
        """The inputs that `output` reads, as a half-open range."""
        return output * self.size // self.out, -(-(output + 1) * self.size // self.out)

    def inputs_of(self, lo: int, hi: int) -> tuple[int, int]:
        """The inputs that the outputs [lo, hi) read."""
        return self.window(lo)[0], self.window(hi - 1)[1]

    @property
    def extent(self) -> int:
        """The longest window: fractions of a window step by gcd(size, out) / out."""
        common = gcd(self.size, self.out)
        return -(-(self.size - common) // self.out) + 1

    @property
    def visits(self) -> int:
        """Inputs of all windows together: neighbours share one wherever their border is inside one."""
        return self.size + self.out - gcd(self.size, self.out)


Windows = Axis | Adaptive


def extent(kernel: int, dilation: int) -> int:
    """Input positions from the first to the last of `kernel` taps that lie `dilation` apart."""
    return dilation * (kernel - 1) + 1


def strided_out(
    size: int, extent: int, stride: int, low: int, high: int, ceil: bool = False
) -> int:
    """Number of windows along an axis; 0 or less where not even one fits.

    With `ceil`, a last window may reach past the padded input, and windows start inside the input or
    its low padding only.
    """
    span = size + low + high - extent
    if not ceil:
        return span // stride + 1
    starting = -(-(size + low) // stride)
    return min(-(-span // stride) + 1, starting)


def same_padding(size: int, extent: int, stride: int, lower: bool) -> tuple[int, int]:
    """Padding for which the output has ceil(size / stride); an odd pixel goes to the end, or the start."""
    return halved(max((-(-size // stride) - 1) * stride + extent - size, 0), lower)


def halved(total: int, lower: bool) -> tuple[int, int]:
    """Padding of `total` pixels at both ends together; an odd one is at the end, or the start."""
    small = total // 2
    return (total - small, small) if lower else (small, total - small)


@dataclass(frozen=True, slots=True)
class Blocking:
    """How work is cut so that a block fits the scratch; fixed by the plan, and so every sum's order.

    tile: output positions per block along each axis. channels: channels per group at a time.
    groups, samples: how many of them share a block (several samples only with all groups).
    """

    tile: tuple[int, ...]
    channels: int
    groups: int
    samples: int


COLUMNS = 64
"""Positions that products are cut into: whole vectors, and as many sums as registers hold."""


WIDEST = 448
"""Positions of a block: the patches of more leave the second-level cache before they are multiplied."""


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Numbers from one place to the next along each axis of an array whose last axis is one run."""
    return tuple(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def block_tile(out: Sequence[int], width: int) -> tuple[int, ...]:
    """Output positions per block: at most `width`, whole rows where they fit, evenly cut.

    Blocks hold a multiple of `COLUMNS` where that fits, so that no product is left with a few.
    """
    tile = [1] * len(out)
    for axis in reversed(range(len(out))):
        fitting = min(out[axis], width)
        each = -(-out[axis] // -(-out[axis] // fitting))
        if each < out[axis]:
            step = COLUMNS // gcd(COLUMNS, prod(tile))
            rounded = -(-each // step) * step
            each = rounded if rounded <= fitting else each
        tile[axis] = each
        width //= each
        if each < out[axis] or width <= 1:
            break
    return tuple(tile)


def blocking(
    out: Sequence[int],
    taps: int,
    channels: int,
    other: int,
    groups: int,
    capacity: int,
    widest: int,
) -> Blocking:
    """Choose blocks of at most `capacity` elements (at least one position of one channel).

    Args:
        out: output positions along each axis.
        taps: patch rows that one channel adds.
        channels: channels per group.
        other: rows of the other side of the product, which share the block's width.
        groups: number of groups.
        capacity: elements of a block's patches, and of its results.
        widest: positions of a block; up to `WIDEST` are worth cutting channels for.
    """
    wanted = min(WIDEST, widest, prod(out))
    chunk = max(1, min(channels, capacity // max(1, taps * wanted)))
    chunk = -(-channels // -(-channels // chunk))
    rows = max(chunk * taps, other)
    tile = block_tile(out, max(1, min(widest, capacity // rows)))
    alike = max(1, capacity // (prod(tile) * rows))
    return Blocking(tile, chunk, min(groups, alike), max(1, alike // groups))


Tile = tuple[tuple[int, int], ...]


def tiles(out: Sequence[int], tile: Sequence[int]) -> Iterator[Tile]:
    """Every block of output positions, in row-major order, as one half-open range per axis."""
    if not out:
        yield ()
        return
    for head in ranges(out[0], tile[0]):
        for rest in tiles(out[1:], tile[1:]):
            yield (head, *rest)


def ranges(size: int, step: int) -> tuple[tuple[int, int], ...]:
    """[0, size) cut into half-open ranges of `step` (the last may be shorter)."""
    return tuple((lo, min(lo + step, size)) for lo in range(0, size, step))


def slices(size: int, step: int) -> Iterator[slice]:
    """`ranges(size, step)` as slices."""
    return (slice(lo, hi) for lo, hi in ranges(size, step))


def as_slices(spans: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Half-open ranges as slices."""
    return tuple(slice(lo, hi) for lo, hi in spans)


def lengths(size: int, step: int) -> set[int]:
    """The lengths of `ranges(size, step)`, two at most however many ranges there are."""
    return {min(size, step), size % step or step} if size else set()


def even(size: int, most: int) -> int:
    """The length of as few equal cuts of [0, size) as have at most `most` each; at least 1."""
    return max(1, -(-size // max(1, -(-size // max(1, most)))))
