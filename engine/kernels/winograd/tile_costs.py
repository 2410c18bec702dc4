"""Whether Winograd's tiles take less time than a plain sum, by what each part of both was measured to take.

For a sample with T tiles of 2 by 4 outputs, C channels, O filters and D taps along depth, whose tiles go
through P products:

    gained  T · (product · D·C·O + gather · D·C − enter · C − leave · O) − P · read · D·C·O − sample
    paid    call + filters · D·C·O                     once for all samples of a call

The choice may not depend on how many samples a call has, since bits would; so it is made for a few.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.blas import multiplies_in_place
from engine.kernels.correlation import Correlation
from engine.kernels.winograd.tiling import WIDTH, tilings

SAMPLES = 3
"""Samples that tiles are to save time for. Where BLAS copies operands, one of 14×14 with 256 channels would
take 1.9 times as long by them as by a plain sum, four 1.15, and eight as long: such are plain sums."""


class Costs(NamedTuple):
    """Nanoseconds on one thread; what counts is how they compare.

    Attributes:
        product: less for multiplying by a weight.
        gather: less for the patches of a plain sum. enter: for transforming inputs, and leave: outputs.
        read: for reading a filter that is transformed, in each product.
        sample: for looking at its numbers, and the calls of its blocks.
        call: for looking at the filters. filters: for transforming one.
    """

    product: float
    gather: float
    enter: float
    leave: float
    read: float
    sample: float
    call: float
    filters: float


COPYING = {
    "auto": Costs(0.92, 8.5, 19, 24, 11, 50e3, 200e3, 40),
    "fastest": Costs(0.88, 15, 18, 23, 9.5, 60e3, 5e3, 9),
}
"""Where BLAS copies operands, on the machine of docs/benchmarks/zen3. With these the way chosen takes about
as little as can be beside the better one: over 706 random layers up to 0.4 GFLOP, 173 larger ones, and 66
as networks have them, of one, four and eight samples, for `auto`, which looks at numbers before it uses
tiles, and 243 for `fastest`. What `auto` pays once for all samples was fitted anew to 602 layers near the
choice, since it looks at filters more closely than when the others were: with it one sample takes 1.08
times the better way's time where it took 1.22, four 1.03 for 1.04, eight 1.05 for 1.03."""

IN_PLACE = {
    "auto": Costs(0.75, 11, 14, 15, 8, 70e3, 100e3, 24),
    "fastest": Costs(0.71, 18, 13, 18, 3.2, 7e3, 24e3, 21),
}
"""Where it multiplies in place, on a machine with 512-bit vectors: the same of 1829 and 729 layers."""

COSTS = IN_PLACE if multiplies_in_place() else COPYING


def pay(c: Correlation) -> bool:
    """True where a few samples of a layer that `tiling.suits` gain more by tiles than all pay once."""
    costs = COSTS[c.wanted]
    plan = tilings(c)[0]
    depth = plan.depth
    rows, columns = c.positions[-2:]
    tiles = depth.out * -(-rows // 2) * -(-columns // WIDTH)
    weights = c.channels * c.outputs * depth.kernel
    tile = costs.product * weights + costs.gather * depth.kernel * c.channels
    tile -= costs.enter * c.channels + costs.leave * c.outputs
    sample = costs.sample + plan.products * costs.read * weights
    return SAMPLES * (tiles * tile - sample) > costs.call + costs.filters * weights
