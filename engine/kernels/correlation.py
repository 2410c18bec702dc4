"""The geometry of a correlation with a bank of filters, and how it is cut into blocks.

Axes: N samples, G groups, C channels of a group, O output channels of a group, S input positions,
K taps, P output positions, T a tile of them. With x (N, G, C, *S), w (G, O, C·K), y (N, G, O, *P):

    y  = Σ_{c,k} w[o, c, k] · x[c, p·stride + k·dilation − low]

Everything here is integers, so that blocks, and with them the order of every sum, are the plan's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

from engine.arena import PART_BYTES
from engine.geometry import WIDEST, Axis, Blocking, Tile, blocking, tiles
from engine.kernels.phases import Residue, residues
from engine.kernels.products import IN_PLACE
from engine.kernels.spacing import READ

LEAST_WORK = 4_000_000
"""Multiplications of a block, where that takes more positions: starting a block costs as many."""

SHARED_FLOPS = 16_000_000
"""Work of a sample from which two threads share it."""

MOST_ROWS = 96
"""Rows of x, each at a distance from the next, that a product reads well where they lie."""

FEW_ROWS = 64
"""Rows of x below which copying them to panels is too much beside multiplying, wherever they lie."""

FAR = 1 << 15
"""Bytes from one row of x to the next from which a product reads fewer rows well."""

MOST_PHASES = 1024
"""Phases above which an adjoint rather scatters: each is a correlation of its own."""

LONE_TAP = 64
"""Phases at most of windows of one tap, where all but one are zeros."""

MOST_APART = 64
"""Inputs for each output, and each phase, above which scattering is quicker without a closer look: phases
multiply as many times what the plan counts."""


@dataclass(frozen=True)
class Correlation:
    """A correlation's geometry: all integers, no samples.

    Arrays are x (N, G, C, *S), y (N, G, O, *P) and weights (G, O, C·K), K being all taps of a window.

    Attributes:
        axes: the window along each spatial axis, S inputs and P outputs.
        groups, channels, outputs: G, and C and O of each group.
        mode: of the padding, by its name in a config.
        itemsize: bytes of a number, the same in all arrays.
        wanted: the algorithm asked for.
        channels_last: whether x and y are views of memory in which all channels of a position are
            consecutive.
        taps_apart: whether weights have all channels, or all outputs, of a tap side by side (HWIO, OHWI).
    """

    axes: tuple[Axis, ...]
    groups: int
    channels: int
    outputs: int
    mode: str
    itemsize: int
    wanted: str = "direct"
    channels_last: bool = False
    taps_apart: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.groups, self.channels, self.outputs, self.mode, self.wanted))

    @cached_property
    def taps(self) -> int:
        """Positions in a window, K."""
        return prod(self.kernel)

    @cached_property
    def kernel(self) -> tuple[int, ...]:
        """Taps along each axis."""
        return tuple(axis.kernel for axis in self.axes)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Output positions along each axis, P."""
        return tuple(axis.out for axis in self.axes)

    @cached_property
    def places(self) -> int:
        """How many output positions there are."""
        return prod(self.positions)

    @cached_property
    def flops(self) -> int:
        """Of one map for one sample, a multiply-add counted as 2."""
        return 2 * self.outputs * self.gathered

    @cached_property
    def gathered(self) -> int:
        """Numbers of a sample's patches: for each output position the inputs under all groups' taps."""
        return self.groups * self.channels * self.taps * self.places

    @cached_property
    def pointwise(self) -> bool:
        """True where a window is one input and every input has one window: nothing to gather."""
        return all(
            axis.kernel == axis.stride == 1 and axis.low == axis.high == 0 and axis.out == axis.size
            for axis in self.axes
        )

    @cached_property
    def disjoint(self) -> bool:
        """True where windows of several inputs lie side by side: none shares any, nor reads padding."""
        plain = self.mode == "zeros" and self.taps > 1
        return plain and all(
            axis.kernel == axis.stride
            and axis.dilation == 1
            and axis.low == 0
            and axis.out * axis.stride <= axis.size
            for axis in self.axes
        )

    @cached_property
    def packed(self) -> bool:
        """True where products in place would read too many rows of x that lie far apart.

        Fewer are too many where they share cache lines, or lie on pages of their own.
        """
        apart = self.places * self.itemsize
        most = FEW_ROWS - 1 if apart % READ == 0 or apart >= FAR else MOST_ROWS
        return self.pointwise and not self.channels_last and self.channels > most

    @cached_property
    def forward_blocks(self) -> Blocking:
        """Blocks of the forward map."""
        return self._blocks(self.channels)

    @cached_property
    def forward_tiles(self) -> tuple[Tile, ...]:
        """Tiles of the forward map."""
        return tuple(tiles(self.positions, self.forward_blocks.tile))

    @cached_property
    def share(self) -> int:
        """Outputs of one product: half of them where a sample is much work and one block."""
        alone = len(self.forward_tiles) == self.groups == 1 and self.flops >= SHARED_FLOPS
        return -(-self.outputs // 2) if alone else self.outputs

    @cached_property
    def input_blocks(self) -> Blocking:
        """Blocks of the adjoint in x: cut into parts of channels, so that threads share a sample."""
        return self._large_blocks(self._shared(self.channels))

    @cached_property
    def weight_blocks(self) -> Blocking:
        """Blocks for the adjoint in w, whose partial sums over O × C·K must fit the scratch too."""
        capacity = PART_BYTES // self.itemsize
        fitting = max(1, capacity // (self.outputs * self.taps))
        blocks = self._large_blocks(min(self._shared(self.channels), fitting))
        partial = self.outputs * blocks.channels * self.taps
        alike = max(1, min(blocks.groups * blocks.samples, capacity // partial))
        groups = min(self.groups, alike)
        if self.weight_joins:
            return replace(blocks, groups=groups)
        return Blocking(blocks.tile, blocks.channels, groups, max(1, alike // self.groups))

    @cached_property
    def weight_joins(self) -> bool:
        """True where a sample's partial sums in w are more numbers than it gives to be multiplied.

        Then a request's samples are joined in one product, whose sums are written once.
        """
        rows = self.channels * self.taps
        return self.outputs * rows > (self.outputs + rows) * self.places

    @cached_property
    def phase_count(self) -> int:
        """How many phases the adjoint in x has; 0 where they would be too many, or too large."""
        count = prod(axis.stride for axis in self.axes)
        most = LONE_TAP if self.taps == 1 else min(self.taps, MOST_PHASES)
        if self.mode != "zeros" or count > most:
            return 0
        if prod(axis.size for axis in self.axes) > MOST_APART * count * self.places:
            return 0
        return prod(min(axis.stride, axis.size) for axis in self.axes)

    def phases(self) -> tuple[Phase, ...]:
        """The adjoint in x as correlations over dy; none where `phase_count` is 0."""
        if not self.phase_count:
            return ()
        # Most have the same windows.
        found: dict[tuple[Axis, ...], Correlation] = {}
        return tuple(self._phase(along, found) for along in product(*map(residues, self.axes)))

    def _phase(
        self, along: tuple[Residue, ...], found: dict[tuple[Axis, ...], Correlation]
    ) -> Phase:
        inputs, taps = tuple(r.inputs for r in along), tuple(r.taps for r in along)
        axes = tuple(r.window for r in along if r.window is not None)
        if len(axes) < len(along):
            return Phase(inputs, taps, None)
        if axes not in found:
            found[axes] = replace(self, axes=axes, channels=self.outputs, outputs=self.channels)
        return Phase(inputs, taps, found[axes])

    @property
    def steps(self) -> int:
        """Copies of one tap of one block: what the interpreter has to do, for one sample."""
        blocks = self.forward_blocks
        cuts = (-(-axis.out // t) for axis, t in zip(self.axes, blocks.tile, strict=True))
        parts = -(-self.channels // blocks.channels) * -(-self.groups // blocks.groups)
        return self.taps * prod(cuts) * parts

    def _blocks(self, channels: int) -> Blocking:
        """Blocks whose patches are gathered for products in place, where the weights are few."""
        weights = channels * self.taps * self.outputs
        if weights > IN_PLACE or self.packed:
            return self._large_blocks(channels)
        capacity = PART_BYTES * 3 // 4 // self.itemsize
        return self._cut(channels, capacity, max(WIDEST, LEAST_WORK // weights))

    def _large_blocks(self, channels: int) -> Blocking:
        """Blocks as large as the scratch allows."""
        return self._cut(channels, PART_BYTES // self.itemsize, self.places)

    def _cut(self, channels: int, capacity: int, widest: int) -> Blocking:
        sizes = self.taps, channels, self.outputs, self.groups
        return blocking(self.positions, *sizes, capacity, widest)

    @staticmethod
    def _shared(channels: int) -> int:
        return -(-channels // (4 if channels >= 128 else 2 if channels >= 32 else 1))


@dataclass(frozen=True, slots=True)
class Phase:
    """Inputs of one residue along every axis, the taps they meet, and the correlation over dy.

    None for a correlation where no tap meets these inputs: their gradient is 0.
    """

    inputs: tuple[slice, ...]
    taps: tuple[slice, ...]
    correlation: Correlation | None
