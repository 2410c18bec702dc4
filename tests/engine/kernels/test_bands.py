"""Views of blocks of banded products: all in the scratch, and as few as blocks have shapes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels import bands, direct
from engine.kernels.banding import banding, row_blocks
from engine.threads import PART_BYTES
from tests.engine.kernels.images import IMAGES, Pair, image


@pytest.mark.parametrize(
    "shape", [*IMAGES, {"size": (700, 300), "kernel": (3, 3), "padding": (1, 1)}]
)
@pytest.mark.parametrize("outputs", [1, 3])
def test_views_lie_in_the_scratch(shape: dict[str, Pair], outputs: int) -> None:
    parts = [direct.part(number, (PART_BYTES,), np.dtype(np.uint8)) for number in range(3)]
    c = image(**shape, outputs=outputs)
    b = banding(c)
    for lo, hi in (span for spans in row_blocks(c) for span in spans):
        v = bands.views(c, min(b.groups, c.groups), lo, hi - lo, True)
        made = [v.rows, v.band, *(target for target, _ in v.gathered), *v.padding]
        made += [copy.target for copy in v.copies]
        made += [a for each in v.strips for a in (each.band, each.inputs, each.made, each.ordered)]
        for array in made:
            assert not array.size or any(np.may_share_memory(array, part) for part in parts)
        assert bands.views(c, min(b.groups, c.groups), lo, hi - lo, True) is v
