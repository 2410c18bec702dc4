"""Checks a convolution of your own against the service: outputs and gradients of random layers.

Each layer is asked for twice in float64: as it is, which is the truth, and with the signs of all numbers
left out, which is what its terms come to where none cancel. An element is right where it is off by no more
than rounding may add up to: `--most` times eps · Σ|terms|. With the service running:

    python examples/check_kernel.py --kernel my_kernel.py

`kernel.py` beside this file is what a kernel looks like. The first layer that is wrong is saved.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from kernel import Layer
from service import Array, Service, ServiceError

HERE = Path(__file__).parent
FAILED = "failed.npz"


def layer_of(rng: np.random.Generator) -> tuple[Layer, dict[str, Array]]:
    """A random layer and its inputs, in float32."""

    def pair(low: int, high: int) -> tuple[int, int]:
        one, other = rng.integers(low, high, 2, endpoint=True)
        return int(one), int(other)

    groups, kernel, dilation, padding = int(rng.integers(1, 4)), pair(1, 5), pair(1, 3), pair(0, 3)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [
        max(1, r - 2 * p) + extra for r, p, extra in zip(reach, padding, pair(0, 9), strict=True)
    ]
    share, outputs = int(rng.integers(1, 5)), groups * int(rng.integers(1, 5))
    shapes = {
        "x": (int(rng.integers(1, 4)), groups * share, *size),
        "weight": (outputs, share, *kernel),
        "bias": (outputs,),
    }
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    return Layer(pair(1, 3), padding, dilation, groups), tensors


def outputs(service: Service, layer: Layer, tensors: dict[str, Array]) -> dict[str, Array]:
    """y in float64."""
    x, weight, bias = (array.astype(np.float64) for array in tensors.values())
    return service.forward("conv", layer._asdict(), x=x, weight=weight, bias=bias)


def gradients(
    service: Service, layer: Layer, tensors: dict[str, Array], dy: Array
) -> dict[str, Array]:
    """dx, dweight and dbias in float64."""
    x, weight, bias, dy = (array.astype(np.float64) for array in (*tensors.values(), dy))
    return service.backward("conv", layer._asdict(), x=x, weight=weight, bias=bias, dy=dy)


def found(
    kernel: ModuleType, layer: Layer, tensors: dict[str, Array], dy: Array
) -> dict[str, Array]:
    """The same by the kernel, which may have no `backward`."""
    x, weight, bias = tensors.values()
    result = {"y": kernel.forward(layer, x, weight, bias)}
    if hasattr(kernel, "backward"):
        backward = kernel.backward(layer, x, weight, dy)
        result |= zip(("dx", "dweight", "dbias"), backward, strict=True)
    return {name: np.asarray(array) for name, array in result.items()}


def fault(name: str, own: Array, true: Array, terms: Array, most: float) -> tuple[float, str]:
    """The largest error in units of eps · Σ|terms|, and what is wrong; empty where nothing is."""
    if own.shape != true.shape:
        return np.inf, f"{name}: shape {list(own.shape)}, expected {list(true.shape)}"
    unit = np.finfo(np.float32).eps * np.maximum(terms, np.finfo(np.float32).tiny)
    off = np.nan_to_num(np.abs(own - true) / unit, nan=np.inf)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    place = f"{name}[{', '.join(map(str, worst))}]"
    wrong = f"{name}: {int((off > most).sum())} of {off.size} elements are off"
    told = f"{wrong}; {place} is {own[worst]:.9g}, expected {true[worst]:.9g}"
    return float(off[worst]), told if off[worst] > most else ""


def loaded(path: Path) -> ModuleType:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SystemExit(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(service: Service, kernel: ModuleType, layers: int, seed: int, most: float) -> bool:
    """Whether a kernel is right on random layers; tells of its errors, or of what is wrong."""
    rng = np.random.default_rng(seed)
    largest: dict[str, float] = {}
    for number in range(1, layers + 1):
        layer, tensors = layer_of(rng)
        true = outputs(service, layer, tensors)
        shape: tuple[int, ...] = true["y"].shape
        dy = rng.standard_normal(shape, np.float32)
        true |= gradients(service, layer, tensors, dy)
        unsigned = {name: np.abs(array) for name, array in tensors.items()}
        terms = outputs(service, layer, unsigned)
        terms |= gradients(service, layer, unsigned, np.abs(dy))
        faults = []
        for name, own in found(kernel, layer, tensors, dy).items():
            off, told = fault(name, own, true[name], terms[name], most)
            largest[name] = max(off, largest.get(name, 0.0))
            faults += [told] if told else []
        if faults:
            shapes = {name: list(array.shape) for name, array in tensors.items()}
            print(f"layer {number} of {layers} is wrong: {layer._asdict()}, {shapes}")
            print(*faults, sep="\n", end="\n\n")
            saved: dict[str, Any] = tensors | {f"true_{name}": true[name] for name in true}
            np.savez(FAILED, dy=dy, **saved)
            print(f"its tensors, and what is right, are in {FAILED}")
            return False
    print(f"{layers} layers are right; largest errors in units of eps · Σ|terms|:")
    print(*(f"  {name}: {off:.2f}" for name, off in largest.items()), sep="\n")
    return True


def main() -> int:
    """Check the kernel that the command line names; 1 where it is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the service")
    parser.add_argument(
        "--kernel", type=Path, default=HERE / "kernel.py", help="Python file to check"
    )
    parser.add_argument("--layers", type=int, default=100, help="random layers")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers")
    parser.add_argument(
        "--most", type=float, default=8.0, help="most of an error, in eps · Σ|terms|"
    )
    given: Any = parser.parse_args()
    try:
        with Service(given.url) as service:
            kernel = loaded(given.kernel)
            right = check(service, kernel, given.layers, given.seed, given.most)
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
