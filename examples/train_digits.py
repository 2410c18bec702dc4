"""Trains a small CNN on scikit-learn's digits, every layer computed by the service, both ways.

    conv 3×3 to 16, ReLU, max-pool 2, conv 3×3 to 32, ReLU, max-pool 2, dense 10 (a 2×2 convolution)

Only the loss (softmax and cross-entropy) and the optimizer (Adam) are computed here. With the
service running:

    python examples/train_digits.py --output digits.png
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from service import Array, Service, ServiceError
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
GOAL = 0.97


@dataclass
class Convolution:
    """A convolution with its activation; a dense layer is one whose kernel covers its input."""

    service: Service
    weight: Array
    config: dict[str, Any]
    bias: Array = field(init=False)
    x: Array = field(init=False)

    def __post_init__(self) -> None:
        self.bias = np.zeros(self.weight.shape[0], np.float32)

    def forward(self, x: Array) -> Array:
        self.x = x
        return self.service.forward("conv", self.config, x=x, weight=self.weight, bias=self.bias)[
            "y"
        ]

    def backward(self, dy: Array) -> tuple[Array, list[Array]]:
        """The gradient of the input, and those of the parameters."""
        found = self.service.backward(
            "conv", self.config, x=self.x, weight=self.weight, bias=self.bias, dy=dy
        )
        return found["dx"], [found["dweight"], found["dbias"]]

    @property
    def parameters(self) -> list[Array]:
        return [self.weight, self.bias]


@dataclass
class MaxPool:
    """Halves height and width; its backward pass needs only where the maxima were."""

    service: Service
    indices: Array = field(init=False)
    input_shape: list[int] = field(init=False)

    def forward(self, x: Array) -> Array:
        self.input_shape = list(x.shape)
        found = self.service.forward("max_pool", {"kernel": 2, "return_indices": True}, x=x)
        self.indices = found["indices"]
        return found["y"]

    def backward(self, dy: Array) -> tuple[Array, list[Array]]:
        config = {"kernel": 2, "input_shape": self.input_shape}
        return self.service.backward("max_pool", config, indices=self.indices, dy=dy)["dx"], []

    @property
    def parameters(self) -> list[Array]:
        return []


class Network:
    """The layers one after the other."""

    def __init__(self, service: Service, rng: np.random.Generator) -> None:
        relu = {"padding": "same", "activation": "relu"}
        self.layers: list[Convolution | MaxPool] = [
            Convolution(service, _he(rng, 16, 1, 3), relu),
            MaxPool(service),
            Convolution(service, _he(rng, 32, 16, 3), relu),
            MaxPool(service),
            Convolution(service, _he(rng, 10, 32, 2), {}),
        ]

    @property
    def parameters(self) -> list[Array]:
        return [parameter for layer in self.layers for parameter in layer.parameters]

    def forward(self, x: Array) -> Array:
        """The logits of each sample: shape (N, 10)."""
        for layer in self.layers:
            x = layer.forward(x)
        return x[:, :, 0, 0]

    def backward(self, dlogits: Array) -> list[Array]:
        """The gradients of `parameters`, in their order."""
        dy = dlogits[:, :, None, None]
        gradients: list[Array] = []
        for layer in reversed(self.layers):
            dy, of_layer = layer.backward(dy)
            gradients = of_layer + gradients
        return gradients


def _he(rng: np.random.Generator, out_channels: int, in_channels: int, kernel: int) -> Array:
    """Random weights of variance 2 / fan-in (He et al. 2015)."""
    shape = (out_channels, in_channels, kernel, kernel)
    deviation = np.sqrt(2 / (in_channels * kernel * kernel))
    weight: Array = deviation * rng.standard_normal(shape)
    return weight.astype(np.float32)


class Adam:
    """Adam (Kingma and Ba 2015) with a rate that falls along half a cosine to zero."""

    def __init__(self, parameters: list[Array], rate: float, steps: int) -> None:
        self.parameters, self.rate, self.steps, self.step = parameters, rate, steps, 0
        self.means = [np.zeros_like(p) for p in parameters]
        self.squares = [np.zeros_like(p) for p in parameters]

    def update(self, gradients: list[Array]) -> None:
        rate = self.rate * 0.5 * (1 + np.cos(np.pi * self.step / self.steps))
        self.step += 1
        correction = np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        for p, g, mean, square in zip(
            self.parameters, gradients, self.means, self.squares, strict=True
        ):
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            p -= np.float32(rate * correction) * mean / (np.sqrt(square) + np.float32(1e-8))


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """The mean loss of the samples, and its gradient with respect to the logits."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(probabilities[rows, labels]).mean())
    probabilities[rows, labels] -= 1
    return loss, probabilities / np.float32(len(labels))


def batches(rng: np.random.Generator, samples: int, size: int) -> Iterator[Array]:
    order = rng.permutation(samples)
    yield from (order[start : start + size] for start in range(0, samples, size))


@dataclass
class Curve:
    """What the training run has shown so far."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[tuple[int, float]] = field(default_factory=list)


def train(service: Service, epochs: int, batch: int) -> Curve:
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    x, x_held_out, labels, labels_held_out = train_test_split(
        images, digits.target, test_size=0.2, stratify=digits.target, random_state=SEED
    )
    rng = np.random.default_rng(SEED)
    network, curve = Network(service, rng), Curve()
    steps = epochs * -(-len(x) // batch)
    optimizer = Adam(network.parameters, rate=4e-3, steps=steps)
    for epoch in range(1, epochs + 1):
        for chosen in batches(rng, len(x), batch):
            logits = network.forward(x[chosen])
            loss, dlogits = softmax_cross_entropy(logits, labels[chosen])
            optimizer.update(network.backward(dlogits))
            curve.losses.append(loss)
            show_progress(steps, curve)
        predicted = network.forward(x_held_out).argmax(axis=1)
        accuracy = float((predicted == labels_held_out).mean())
        curve.accuracies.append((epoch * steps // epochs, accuracy))
        show_progress(steps, curve)
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return curve


def show_progress(total: int, curve: Curve) -> None:
    """One line on a terminal, written over itself; nothing elsewhere."""
    if not sys.stderr.isatty():
        return
    done = len(curve.losses)
    filled = 32 * done // total
    accuracy = f"{curve.accuracies[-1][1]:7.2%}" if curve.accuracies else "      -"
    sys.stderr.write(
        f"\r{'█' * filled}{'░' * (32 - filled)} step {done}/{total}"
        f"  loss {curve.losses[-1]:.4f}  held-out accuracy {accuracy}"
    )
    sys.stderr.flush()


def draw(curve: Curve, path: Path) -> None:
    """The learning curve as a picture."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = np.arange(1, len(curve.losses) + 1)
    window = 23
    smooth = np.convolve(curve.losses, np.ones(window) / window, mode="valid")
    left.semilogy(steps, curve.losses, color="#c6d3e1", linewidth=0.8)
    left.semilogy(steps[window - 1 :], smooth, color="#1f5a96", linewidth=1.8)
    left.set_title("Training loss", loc="left", fontweight="bold")
    at, accuracy = zip(*curve.accuracies, strict=True)
    right.plot(at, [100 * a for a in accuracy], color="#b4532a", marker="o", markersize=4)
    right.axhline(100 * GOAL, color="#999999", linewidth=0.8, linestyle="--")
    right.annotate(
        f"{accuracy[-1]:.2%}",
        (at[-1], 100 * accuracy[-1]),
        xytext=(0, 9),
        textcoords="offset points",
        ha="right",
        color="#b4532a",
        fontweight="bold",
    )
    right.set_ylim(top=100)
    right.set_title("Held-out accuracy, %", loc="left", fontweight="bold")
    for axes in (left, right):
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def main() -> int:
    parser = argparse.ArgumentParser(description="Trains a small CNN through the service.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--output", type=Path, default=Path("train_digits.png"))
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        with Service(options.url) as service:
            curve = train(service, options.epochs, options.batch)
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    draw(curve, options.output)
    accuracy = curve.accuracies[-1][1]
    print(
        f"{accuracy:.2%} of the held-out digits after {len(curve.losses)} steps"
        f" in {time.perf_counter() - start:.0f} s; curve in {options.output}"
    )
    return 0 if accuracy >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
