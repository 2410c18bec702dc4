"""Pieces of a filter's gradient: that each output is in one of them, with all its inputs."""

from __future__ import annotations

import numpy as np
import pytest

from engine.geometry import Axis
from engine.kernels.correlation import Correlation
from engine.kernels.winograd import pieces
from engine.kernels.winograd.pieces import SIDES

LAYERS = [
    # channels, outputs, size, padding, samples
    (64, 64, (56, 56), 1, 8),
    (100, 40, (28, 29), 1, 3),
    (3, 5, (7, 61), 0, 2),
    (64, 64, (8, 8), 1, 33),
    (16, 16, (9, 600), 2, 1),
    (128, 128, (28, 28), 1, 8),
    (300, 100, (200, 4), 1, 2),
    (128, 160, (2, 300), 1, 3),
    (256, 256, (2, 4), 1, 70),
]


def layer(channels: int, outputs: int, size: tuple[int, ...], padding: int) -> Correlation:
    axes = tuple(Axis(n, 3, 1, 1, padding, padding, n + 2 * padding - 2) for n in size)
    return Correlation(axes, 1, channels, outputs, "zeros", 4)


@pytest.mark.parametrize(("channels", "outputs", "size", "padding", "samples"), LAYERS)
def test_every_output_is_in_one_piece_and_its_inputs_with_it(
    channels: int, outputs: int, size: tuple[int, ...], padding: int, samples: int
) -> None:
    c = layer(channels, outputs, size, padding)
    met = np.zeros((samples, 1, *c.positions), int)
    for piece in pieces.pieces(c, samples):
        met[piece.upstream] += 1
        shape = piece.shape
        assert piece.source[0] == piece.upstream[0]
        for d, axis in enumerate(c.axes):
            first = piece.upstream[2 + d].start
            assert shape.inputs[d] == shape.outputs[d] + 2 == shape.counts[1 + d] * SIDES[d] + 2
            own, placed = piece.source[2 + d], shape.placed[d]
            assert own.stop - own.start == placed[1] - placed[0]
            assert own.start - placed[0] == first - axis.low
            assert own.start == max(0, first - axis.low)
            assert own.stop == min(axis.size, first - axis.low + shape.inputs[d])
    assert (met == 1).all()


@pytest.mark.parametrize(("channels", "outputs", "size", "padding", "samples"), LAYERS)
def test_pieces_share_a_few_shapes(
    channels: int, outputs: int, size: tuple[int, ...], padding: int, samples: int
) -> None:
    found = pieces.pieces(layer(channels, outputs, size, padding), samples)
    assert len({id(p.shape) for p in found}) == len({p.shape for p in found}) <= 12
