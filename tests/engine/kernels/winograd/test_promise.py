"""`auto` beside the plain sum, for numbers that Winograd's tiles alone would do far less exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import engine
from engine.kernels.direct import gathered
from engine.kernels.winograd.promise import sample_choices

pytestmark = pytest.mark.usefixtures("as_large")

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

MARGIN = 7
"""Errors above the plain sum's; the promise is 8."""


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def share(of: float) -> Draw:
    """Normal numbers, most of them replaced by 0."""
    return lambda rng, shape: normal(rng, shape) * (rng.random(shape) < of)


def outlier(size: float) -> Draw:
    """Normal numbers and a single large one, in a row that nobody looks at."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        a = normal(rng, shape)
        a[0, 5, shape[-2] // 2 | 1, 3] = size
        return a

    return draw


def scaled(axis: int, digits: float) -> Draw:
    """Normal numbers whose sizes differ by some digits along an axis."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        along = [1] * len(shape)
        along[axis] = shape[axis]
        return normal(rng, shape) * 10 ** (digits * rng.random(along))

    return draw


def binary(digits: int) -> Draw:
    """Normal numbers of so many binary digits."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        bits = normal(rng, shape).astype(np.float32).view(np.uint32)
        return (bits >> 24 - digits << 24 - digits).view(np.float32)

    return draw


def taps(*kept: tuple[int, int]) -> Draw:
    """Filters with few taps."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        a = np.zeros(shape)
        for tap in kept:
            a[..., *tap] = normal(rng, shape[:-2])
        return a

    return draw


def checker(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Nearly alternating along rows and columns."""
    rows, columns = np.indices(shape[-2:])
    return normal(rng, (*shape[:-2], 1, 1)) * (-1.0) ** (rows + columns) + normal(rng, shape) / 100


def smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = np.indices(shape[-2:])
    steps = rng.random((3, *shape[:-2], 1, 1))
    return np.sin(steps[0] * rows / 3 + steps[1] * columns / 3 + 6 * steps[2])


def pattern(*signs: int) -> Draw:
    """Signs one after the other along rows, with a size for each channel."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return (rng.random((*shape[:2], 1, 1)) + 0.5) * np.resize(signs, shape[-1]) * np.ones(shape)

    return draw


def board(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = np.indices(shape[-2:])
    return 1.1 * (-1.0) ** (rows + columns) * np.ones(shape)


def soft(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers, averaged with their neighbours again and again."""
    a = normal(rng, shape)
    for axis in (-1, -2) * 3:
        a = (a + np.roll(a, 1, axis) + np.roll(a, -1, axis)) / 3
    return a


def wave(length: int) -> Draw:
    """A wave along rows, the same for all, and a little of something else."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.cos(2 * np.pi * np.arange(shape[-1]) / length + 1) * (1 + normal(rng, shape) / 20)

    return draw


def ramp(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = np.indices(shape[-2:])
    return rows - columns / 10 + normal(rng, shape)


def stencil(*rows: tuple[int, int, int], each: bool = True) -> Draw:
    """One filter for all, or times a number of their own for each."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        own = normal(rng, (*shape[:2], 1, 1)) if each else np.ones((*shape[:2], 1, 1))
        return own * np.array(rows)

    return draw


def but_one(draw: Draw) -> Draw:
    """All but one of whose numbers are as drawn."""

    def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        a = draw(rng, shape)
        a[0, 0, 1, 1] = 0.1
        return a

    return drawn


def alike(draw: Draw) -> Draw:
    """The same in all channels."""
    return lambda rng, shape: np.repeat(draw(rng, (shape[0], 1, *shape[2:])), shape[1], 1)


def repeated(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Four by four numbers again and again, out of those that are the worst for tiles of this height."""
    few = normal(np.random.default_rng(5), (4, 4))
    down, across = shape[-2:]
    return np.tile(few, (*shape[:-2], -(-down // 4), -(-across // 4)))[..., :down, :across]


def in_pairs(draw: Draw) -> Draw:
    """Half of the channels as drawn, in any order among others that are the negatives of these."""

    def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        half = draw(rng, (shape[0], shape[1] // 2, *shape[2:]))
        return np.concatenate((half, -half), 1)[:, rng.permutation(shape[1])]

    return drawn


SOBEL = (1, 0, -1), (2, 0, -2), (1, 0, -1)
LAPLACE = (0, 1, 0), (1, -4, 1), (0, 1, 0)


def identity(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    a = np.zeros(shape)
    a[..., 1, 1] = np.eye(shape[0], shape[1])
    return a


DRAWS: Mapping[str, Draw] = {
    "normal": normal,
    "rectified": lambda rng, shape: np.maximum(normal(rng, shape), 0),
    "half": share(0.5),
    "third": share(0.3),
    "sixth": share(0.15),
    "few": share(0.01),
    "around ten": lambda rng, shape: normal(rng, shape) + 10,
    "around ten, alternating": lambda rng, shape: (
        (normal(rng, shape) + 10) * (-1.0) ** np.arange(shape[1])[:, None, None]
    ),
    "constant": lambda _, shape: np.full(shape, np.pi),
    "exponential": lambda rng, shape: np.exp(3 * normal(rng, shape)),
    "outlier 1e2": outlier(1e2),
    "outlier 1e4": outlier(1e4),
    "outlier 1e6": outlier(1e6),
    "outlier 1e8": outlier(1e8),
    "rows": scaled(-2, 6),
    "columns": scaled(-1, 12),
    "channels": scaled(1, 8),
    "half precision": binary(11),
    "brain": binary(8),
    "whole": lambda rng, shape: np.rint(3 * normal(rng, shape)),
    "tenths": lambda rng, shape: np.rint(3 * normal(rng, shape)) / 10,
    "tens": lambda rng, shape: np.rint(3 * normal(rng, shape)) * 10,
    "signs": lambda rng, shape: np.sign(normal(rng, shape)),
    "photo": lambda rng, shape: 127 + 100 * smooth(rng, shape) + 20 * normal(rng, shape),
    "smooth": smooth,
    "checker": checker,
    "board": board,
    "soft": soft,
    "alternating": pattern(1, -1),
    "ones, some small": lambda rng, shape: np.where(
        np.arange(shape[1])[:, None, None] % 3 == 0, normal(rng, shape) / 100, 1
    ),
    "pairs": pattern(1, 1, -1, -1),
    "tiny": lambda rng, shape: normal(rng, shape) * 1e-41,
    "huge": lambda rng, shape: normal(rng, shape) * 1e20,
    "small": lambda rng, shape: normal(rng, shape) * 1e-19,
    "corner": taps((0, 0)),
    "centre": taps((1, 1)),
    "edge": taps((0, 0), (0, 1), (1, 0), (1, 1)),
    "identity": identity,
    "wave of three": wave(3),
    "wave of six": wave(6),
    "repeated": repeated,
    "one wave of three": alike(wave(3)),
    "nearly one": lambda rng, shape: 1.1 + normal(rng, shape) / 100,
    "nearly one, in pairs": in_pairs(lambda rng, shape: 1.1 + normal(rng, shape) / 100),
    "nearly a box": lambda rng, shape: 1 + normal(rng, shape) / 10,
    "ramp": ramp,
    "rows alike": lambda _, shape: 1.1 * np.resize((1, 1, -2), shape[-1]) * np.ones(shape),
    "edges": stencil(*SOBEL),
    "edges across": stencil(*np.transpose(SOBEL)),
    "second differences": stencil((1, -2, 1), (-2, 4, -2), (1, -2, 1)),
    "laplacian": stencil(*LAPLACE, each=False),
    "signs, but one": but_one(lambda rng, shape: np.sign(normal(rng, shape))),
    "whole, but one": but_one(lambda rng, shape: np.rint(3 * normal(rng, shape))),
}


def drawn(kind: str, seed: int, *shape: int) -> np.ndarray:
    return DRAWS[kind](np.random.default_rng(seed), shape).astype(np.float32)


def errors(
    action: str,
    name: str,
    tensors: Mapping[str, np.ndarray],
    algorithm: str = "auto",
    padding: int = 1,
) -> tuple[float, float]:
    """The largest errors of an algorithm and of the plain sum."""

    def run(algorithm: str, dtype: str = "f4") -> np.ndarray:
        config = {"padding": padding, "algorithm": algorithm}
        given = {key: a.astype(dtype) for key, a in tensors.items()}
        if action == "forward":
            return engine.forward("conv", config, **given)[name]
        return engine.backward("conv", config, [name], **given)[name]

    exact = run("direct", "f8")
    own, plain = (float(np.abs(run(by) - exact).max()) for by in (algorithm, "direct"))
    return own, plain


@pytest.mark.parametrize(
    ("x", "w"),
    [
        ("normal", "few"),
        ("normal", "corner"),
        ("rectified", "corner"),
        ("normal", "identity"),
        ("third", "edge"),
        ("rectified", "checker"),
        ("sixth", "around ten, alternating"),
        ("sixth", "smooth"),
        ("columns", "around ten"),
        ("half precision", "signs"),
        ("brain", "brain"),
        ("tenths", "tens"),
        ("tens", "tenths"),
        ("outlier 1e2", "normal"),
        ("outlier 1e4", "corner"),
        ("outlier 1e8", "checker"),
        ("board", "soft"),
        ("tiny", "huge"),
        ("huge", "tiny"),
        ("small", "small"),
    ],
)
@pytest.mark.parametrize(("channels", "outputs", "size"), [(64, 64, 14), (128, 32, 14)])
def test_outputs(channels: int, outputs: int, size: int, x: str, w: str) -> None:
    tensors = {
        "x": drawn(x, 1, 1, channels, size, size),
        "weight": drawn(w, 2, outputs, channels, 3, 3),
    }
    own, plain = errors("forward", "y", tensors)
    assert own <= MARGIN * plain


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(
    ("x", "w"),
    [
        ("wave of three", "nearly a box"),
        ("wave of three", "rectified"),
        ("repeated", "whole"),
        ("one wave of three", "nearly one, in pairs"),
        ("wave of six", "nearly a box"),
        ("nearly one", "edges"),
        ("constant", "edges"),
        ("nearly one", "second differences"),
        ("ramp", "laplacian"),
        ("ramp", "edges"),
        ("rows alike", "edges across"),
        ("signs", "signs, but one"),
        ("whole, but one", "whole"),
    ],
)
def test_outputs_of_sums_that_cancel_or_are_exact(x: str, w: str, padding: int) -> None:
    tensors = {"x": drawn(x, 1, 1, 64, 20, 20), "weight": drawn(w, 2, 64, 64, 3, 3)}
    own, plain = errors("forward", "y", tensors, padding=padding)
    assert own <= MARGIN * plain


@pytest.mark.parametrize("x", ["normal", "rectified", "half", "photo", "smooth", "soft"])
@pytest.mark.parametrize("w", ["normal", "soft", "around ten"])
def test_blocks_of_usual_numbers_are_kept(x: str, w: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unused(*_: object) -> None:
        raise AssertionError("a block was done again")

    monkeypatch.setattr(gathered, "forward_block", unused)
    given = drawn(x, 1, 2, 64, 27, 33), drawn(w, 2, 64, 64, 3, 3)
    engine.forward("conv", {"padding": 1}, x=given[0], weight=given[1])


@pytest.mark.parametrize(
    ("x", "w", "channels", "height"),
    [
        ("normal", "normal", 64, 4),
        ("normal", "normal", 128, 4),
        ("normal", "normal", 160, 2),
        ("normal", "around ten", 64, 2),
        ("normal", "smooth", 64, 2),
        ("rectified", "normal", 64, 2),
        ("third", "corner", 64, None),
        ("few", "normal", 64, None),
        ("whole", "whole", 64, None),
    ],
)
def test_numbers_have_the_fastest_tiles_that_are_exact(
    x: str, w: str, channels: int, height: int | None
) -> None:
    shapes = {"x": (2, channels, 14, 14), "weight": (32, channels, 3, 3)}
    c = engine.plan("conv", {"padding": 1}, shapes).plan.geometry.correlation
    samples = drawn(x, 1, 2, 1, channels, 14, 14)
    filters = drawn(w, 2, 32, channels, 3, 3).reshape(32, channels, 1, 9)
    choices = sample_choices(c, samples, filters)
    assert [choice.plan and choice.plan.height for choice in choices] == [height] * 2


@pytest.mark.parametrize("x", ["normal", "rectified", "around ten"])
def test_a_sample_has_its_bits_beside_others_with_other_tiles(x: str) -> None:
    w = drawn("normal", 2, 64, 64, 3, 3)
    one = drawn(x, 1, 1, 64, 14, 14)
    others = [drawn(kind, 3, 1, 64, 14, 14) for kind in ("normal", "rectified", "few")]
    alone = engine.forward("conv", {"padding": 1}, x=one, weight=w)["y"]
    joined = np.concatenate((others[0], one, *others[1:]))
    among = engine.forward("conv", {"padding": 1}, x=joined, weight=w)["y"][1:2]
    assert alone.tobytes() == among.tobytes()


@pytest.mark.parametrize(("dy", "w"), [("half", "around ten"), ("outlier 1e4", "corner")])
def test_gradients_of_inputs(dy: str, w: str) -> None:
    tensors = {
        "x": np.zeros((1, 64, 14, 14), np.float32),
        "weight": drawn(w, 2, 64, 64, 3, 3),
        "dy": drawn(dy, 1, 1, 64, 14, 14),
    }
    own, plain = errors("backward", "dx", tensors)
    assert own <= MARGIN * plain


@pytest.mark.parametrize(
    ("x", "dy"),
    [
        ("exponential", "half"),
        ("exponential", "around ten"),
        ("rows", "rows"),
        ("channels", "checker"),
        ("half", "photo"),
        ("third", "constant"),
        ("third", "outlier 1e8"),
        ("outlier 1e4", "around ten"),
        ("outlier 1e4", "outlier 1e4"),
        ("outlier 1e6", "outlier 1e6"),
        ("half precision", "signs"),
        ("brain", "whole"),
        ("tenths", "tens"),
        ("columns", "columns"),
        ("constant", "alternating"),
        ("ones, some small", "ones, some small"),
        ("ones, some small", "whole"),
        ("photo", "alternating"),
        ("alternating", "smooth"),
        ("pairs", "rectified"),
        ("constant", "pairs"),
        ("board", "constant"),
        ("tiny", "huge"),
        ("rectified", "tiny"),
        ("small", "small"),
    ],
)
@pytest.mark.parametrize(
    ("samples", "channels", "outputs", "size"), [(4, 32, 32, 14), (2, 64, 32, 28)]
)
def test_gradients_of_weights(
    samples: int, channels: int, outputs: int, size: int, x: str, dy: str
) -> None:
    tensors = {
        "x": drawn(x, 1, samples, channels, size, size),
        "weight": np.zeros((outputs, channels, 3, 3), np.float32),
        "dy": drawn(dy, 2, samples, outputs, size, size),
    }
    own, plain = errors("backward", "dweight", tensors)
    assert own <= MARGIN * plain
