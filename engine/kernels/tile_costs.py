"""Whether Winograd's tiles take less time than a plain sum, by what each part of both was measured to take.

For a sample with T tiles of 2 by 4 outputs, C channels, O filters and D taps along depth, whose tiles go
through P products:

    gained  T · (product · D·C·O + gather · D·C − enter · C − leave · O) − P · read · D·C·O − sample
    paid    call + filters · D·C·O                     once for all samples of a call

The choice may not depend on how many samples a call has, since bits would; so it is made for a few.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.kernels.correlation import Correlation
from engine.kernels.tiling import WIDTH, tilings

SAMPLES = 3
"""Samples that tiles are to save time for. Of 14×14 with 256 channels one takes 1.7 times as long by them
as by a plain sum, eight 0.75."""


class Costs(NamedTuple):
    """Nanoseconds on one thread of the machine of docs/benchmarks/zen3; what counts is how they compare.

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


COSTS = {
    "auto": Costs(0.9, 10, 20, 28, 10, 100e3, 150e3, 22),
    "fastest": Costs(0.9, 15, 16, 22, 10, 75e3, 35e3, 20),
}
"""With these the way chosen takes least beside the better one, over random layers of one, four and eight
samples: 963 up to 0.4 GFLOP and 434 larger ones for `auto`, which looks at numbers before it uses tiles,
and 571 for `fastest`."""


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
