"""Whether layers of 3×3 go the quicker way: random layers, each by Winograd's tiles and as a plain sum.

``python -m benchmarks.choices [--seconds 60] [--seed 0] [--wanted auto]``

Both ways are timed in turns, and what was chosen is compared with the better of the two. A layer is
chosen a way once for any number of samples, so that it cannot be the better one for all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

import engine
from benchmarks.kernels.tables import grid
from engine.kernels import dispatch
from engine.kernels.correlation import Correlation
from engine.kernels.winograd import correlating, tiling
from engine.threads import computing

SAMPLES = (1, 4, 8)
ROUNDS = 5
WORST = 12
"""Layers that are shown."""

USUAL = 0.3
"""Share of layers as networks have them: square maps, and as many filters as channels, by the 32."""

MOST_FLOPS = 400_000_000
"""Of a sample: larger layers take long to time, and tiles save the most of them."""


@dataclass(frozen=True)
class Timed:
    """A layer, how many samples, and the seconds that both ways took."""

    layer: Correlation
    samples: int
    tiles: float
    plain: float

    @property
    def chosen(self) -> str:
        """The way it goes."""
        return dispatch.forward_algorithm(self.layer)

    @property
    def better(self) -> float:
        """The seconds of the better way."""
        return min(self.tiles, self.plain)

    @property
    def loss(self) -> float:
        """What was chosen over the better one, 1 where that is the same."""
        taken = self.tiles if self.chosen == "winograd" else self.plain
        return taken / self.better


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure for as long as asked, and print what choices cost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choices", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of measuring; default 60")
    parser.add_argument("--seed", type=int, default=0, help="of the layers; default 0")
    parser.add_argument("--threads", type=int, default=1, help="of the engine; default 1")
    parser.add_argument(
        "--wanted", choices=("auto", "fastest"), default="auto", help="the algorithm asked for"
    )
    options = parser.parse_args(arguments)
    random, end = np.random.default_rng(options.seed), time.monotonic() + options.seconds
    engine.set_threads(options.threads)
    found: list[Timed] = []
    while not found or time.monotonic() < end:
        layer = drawn(random, options.wanted)
        if tiling.suits(layer) and layer.flops <= MOST_FLOPS:
            found += (measured(layer, samples, random) for samples in SAMPLES)
            print(f"\r{len(found) // len(SAMPLES)} layers", end="", file=sys.stderr, flush=True)
    print(f"\n{summary(found)}\n\n{worst(found)}")
    return 0


def drawn(random: np.random.Generator, wanted: str) -> Correlation:
    """A layer of 3×3, or 3×3×3, with padding 1."""
    channels, outputs = (int(2 ** random.uniform(3, 9)) for _ in range(2))
    spatial = [int(2 ** random.uniform(2.5, 7)) for _ in range(2)]
    if random.random() < USUAL:
        channels = outputs = int(random.integers(1, 17)) * 32
        spatial[1] = spatial[0]
    elif random.random() < 0.25:
        spatial.insert(0, int(random.integers(3, 17)))
    shapes = {"x": (1, channels, *spatial), "weight": (outputs, channels, *(3,) * len(spatial))}
    plan = engine.plan("conv", {"padding": 1, "algorithm": wanted}, shapes).plan
    correlation: Correlation = plan.geometry.correlation
    return correlation


def measured(layer: Correlation, samples: int, random: np.random.Generator) -> Timed:
    """The least time of each way, taken in turns."""
    sizes = [axis.size for axis in layer.axes]
    x = random.standard_normal((samples, 1, layer.channels, *sizes), np.float32)
    w = random.standard_normal((1, layer.outputs, layer.channels * layer.taps), np.float32)
    y = np.empty((samples, 1, layer.outputs, *layer.positions), np.float32)
    plain = dispatch.PLAIN[dispatch.plain_kernel(layer)]
    ways: tuple[Callable[[], None], ...] = (
        lambda: correlating.forward(layer, x, w, None, y, plain),
        lambda: plain(layer, x, w, None, y),
    )
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for way, taken in zip(ways, times, strict=True):
            start = time.perf_counter()
            computing(None, way)
            taken.append(time.perf_counter() - start)
    return Timed(layer, samples, min(times[0]), min(times[1]))


def summary(found: Sequence[Timed]) -> str:
    """A line for each number of samples: the way chosen, tiles and plain sums beside the better of both."""
    lines = []
    for samples in SAMPLES:
        here = [timed for timed in found if timed.samples == samples]
        tiled = sum(timed.chosen == "winograd" for timed in here)
        ways = (
            [timed.loss for timed in here],
            [timed.tiles / timed.better for timed in here],
            [timed.plain / timed.better for timed in here],
        )
        means = [f"{exp(sum(map(log, way)) / len(way)):.3f}" for way in ways]
        ends = [f"{np.percentile(ways[0], 95):.2f}", f"{max(ways[0]):.2f}"]
        lines.append([str(samples), str(len(here)), str(tiled), *means[:1], *ends, *means[1:]])
    header = [
        "samples",
        "layers",
        "by tiles",
        "chosen / better",
        "95th",
        "most",
        "tiles / better",
        "plain / better",
    ]
    return grid(header, lines, markdown=False)


def worst(found: Sequence[Timed]) -> str:
    """The layers whose way took longest beside the other."""
    header = ["layer", "samples", "chosen", "tiles ms", "plain ms"]
    lines = []
    for timed in sorted(found, key=lambda timed: -timed.loss)[:WORST]:
        c = timed.layer
        shape = f"{c.channels} to {c.outputs} on {'×'.join(str(axis.size) for axis in c.axes)}"
        times = [f"{1e3 * seconds:.2f}" for seconds in (timed.tiles, timed.plain)]
        lines.append([shape, str(timed.samples), timed.chosen, *times])
    return grid(header, lines, markdown=False)


if __name__ == "__main__":
    sys.exit(main())
