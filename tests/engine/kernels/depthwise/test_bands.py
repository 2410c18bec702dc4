"""Views of blocks of banded products: all in the scratch, and as few as blocks have shapes."""

from __future__ import annotations

import numpy as np
import pytest

from engine import arena
from engine.arena import PART_BYTES
from engine.kernels.depthwise import bands
from engine.kernels.depthwise.banding import banding, parts, row_blocks
from tests.engine.kernels.images import IMAGES, Shape, image


@pytest.mark.parametrize(
    "shape",
    [
        *IMAGES,
        {"size": (700, 300), "kernel": (3, 3), "padding": (1, 1)},
        {"size": (60, 900), "kernel": (25, 25), "padding": (12, 12)},
    ],
)
@pytest.mark.parametrize("outputs", [1, 3])
def test_views_lie_in_the_scratch(shape: Shape, outputs: int) -> None:
    scratch = [arena.part(number, (PART_BYTES,), np.dtype(np.uint8)) for number in range(3)]
    whole = image(**shape, outputs=outputs)
    for part in parts(whole):
        c, b = part.correlation, banding(part.correlation)
        for lo, hi in (span for spans in row_blocks(c) for span in spans):
            v = bands.views(c, min(b.groups, c.groups), lo, hi - lo, True)
            made = [v.rows, v.band, *(target for target, _ in v.gathered), *v.padding]
            made += [copy.target for copy in v.copies]
            for each in v.strips:
                made += [each.band, each.inputs, each.made, each.ordered]
            for array in made:
                assert not array.size or any(np.may_share_memory(array, held) for held in scratch)
            assert bands.views(c, min(b.groups, c.groups), lo, hi - lo, True) is v
