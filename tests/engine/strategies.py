"""Hypothesis strategies: legal layers of every operation, small, with every config field.

A layer holds shapes and a seed, never numbers, so that Hypothesis shrinks what matters. Shapes are
built to be legal; nothing is filtered away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.engine import reference
from tests.engine.reference.geometry import conv_padding, extent, window_count
from tests.engine.values import numbers, words

Arrays = dict[str, np.ndarray]
Draw = Callable[[st.SearchStrategy[Any]], Any]

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
KERNEL = {1: 5, 2: 3, 3: 2}
EXTRA = {1: 6, 2: 3, 3: 2}


@dataclass(frozen=True)
class Layer:
    """One request: operation, config, the shapes of forward's tensors, and how to make them."""

    operation: str
    config: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    seed: int
    kind: str = "dense"
    plane: int = field(default=0, compare=False)

    @property
    def rank(self) -> int:
        """Number of spatial dimensions."""
        return len(self.shapes["x"]) - 2

    @property
    def samples(self) -> int:
        return self.shapes["x"][0]

    def given(self, dtype: str = "float64", salt: int = 0, samples: int | None = None) -> Arrays:
        """Forward's tensors. `salt` gives other numbers, `samples` another N (weights stay)."""
        made = {}
        for place, (name, shape) in enumerate(self.shapes.items()):
            shared = name in ("weight", "bias")
            if samples is not None and not shared:
                shape = (samples, *shape[1:])
            seed = self.seed * 64 + place + (0 if shared else 8 * salt)
            if name == "indices":
                count = int(np.prod(shape))
                draw = words(seed, count) % np.uint64(self.plane + 1)
                made[name] = draw.astype(np.int64).reshape(shape) - 1
            else:
                kind = self.kind if name == "x" else "dense"
                made[name] = numbers(seed, shape, kind, dtype)
                if kind == "smooth":
                    made[name] = self.smooth(made[name])
        return made

    def smooth(self, x: np.ndarray) -> np.ndarray:
        """Distinct numbers off every kink, where finite differences are true."""
        order = np.argsort(words(self.seed, x.size), kind="stable").reshape(x.shape)
        return ((order + 0.37) / max(1, x.size) * 4 - 2).astype(x.dtype)

    def dy(self, y: np.ndarray, salt: int = 0) -> np.ndarray:
        """A random upstream gradient."""
        return numbers(self.seed * 64 + 7 + 8 * salt, y.shape, "dense", str(y.dtype))

    def backward_names(self) -> tuple[str, ...]:
        return ("indices",) if self.operation == "max_unpool" else tuple(self.shapes)

    def expected(self) -> tuple[Arrays, Arrays]:
        """The reference's forward and backward, in float64."""
        given = self.given()
        forward = reference.forward(self.operation, self.config, **given)
        back = {name: given[name] for name in self.backward_names()}
        back["dy"] = self.dy(forward["y"])
        return forward, reference.backward(self.operation, self.config, None, **back)


def seeds() -> st.SearchStrategy[int]:
    return st.integers(1, 1000)


def per_axis(draw: Draw, rank: int, low: int, high: int) -> list[int]:
    return [draw(st.integers(low, high)) for _ in range(rank)]


def written(draw: Draw, values: list[int]) -> int | list[int]:
    """One integer stands for all axes: write it so now and then where that says the same."""
    return values[0] if len(set(values)) == 1 and draw(st.booleans()) else values


def put(draw: Draw, config: dict[str, Any], name: str, value: Any, default: Any) -> None:
    """Add a field; a default is mostly left unsaid."""
    if value != default or draw(st.integers(0, 3)) == 0:
        config[name] = value


def numeric_padding(draw: Draw, rank: int, most: int) -> Any:
    if draw(st.booleans()):
        return written(draw, per_axis(draw, rank, 0, most))
    return [per_axis(draw, 2, 0, most) for _ in range(rank)]


def layouts(draw: Draw, config: dict[str, Any], rank: int) -> bool:
    """Draw the layout; True for channels last."""
    first, last = f"NC{SPATIAL[rank]}", f"N{SPATIAL[rank]}C"
    layout = draw(st.sampled_from([None, first, last]))
    if layout is not None:
        config["layout"] = layout
    return layout == last


def sample_shape(
    draw: Draw, last: bool, channels: int, size: list[int], most: int = 3
) -> tuple[int, ...]:
    n = draw(st.sampled_from([1, 2, most, 0]))
    return (n, *size, channels) if last else (n, channels, *size)


def activation_specs() -> st.SearchStrategy[Any]:
    """Every activation, by name and with parameters; no parameter puts a jump into the value."""
    alpha = st.sampled_from([0.1, 0.5, 1.5])
    return st.one_of(
        st.sampled_from(sorted(reference.ACTIVATIONS)),
        st.builds(lambda a: {"name": "leaky_relu", "alpha": a}, alpha),
        st.builds(lambda a: {"name": "elu", "alpha": a}, alpha),
        st.builds(lambda b: {"name": "gelu", "approximate": b}, st.booleans()),
        st.builds(lambda a: {"name": "hard_sigmoid", "alpha": a, "beta": 0.3}, alpha),
        st.builds(lambda a: {"name": "affine", "slope": -a, "intercept": a}, alpha),
        st.builds(lambda: {"name": "affine", "slope": 3}),
    )


def taps(draw: Draw, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Kernel, stride and dilation."""
    kernel = per_axis(draw, rank, 1, KERNEL[rank])
    stride = per_axis(draw, rank, 1, 3)
    return kernel, stride, per_axis(draw, rank, 1, 3 if rank < 3 else 2)


def weights(
    draw: Draw,
    config: dict[str, Any],
    last: bool,
    leading: tuple[int, int],
    kernel: list[int],
    canonical: str,
) -> tuple[int, ...]:
    """Draw a weight layout; `leading` are the sizes of the letters of `canonical`."""
    space = SPATIAL[len(kernel)]
    letters = space + "IO" if last else canonical + space
    if draw(st.booleans()):
        letters = "".join(draw(st.permutations(canonical + space)))
        config["weight_layout"] = letters
    size = dict(zip(canonical + space, (*leading, *kernel), strict=True))
    return tuple(size[letter] for letter in letters)


def linear_fields(draw: Draw, config: dict[str, Any], plain: bool) -> None:
    """The fields that conv and conv_transpose share; `plain` leaves the layer linear."""
    put(draw, config, "flip_kernel", draw(st.booleans()), False)
    put(draw, config, "grad_reduction", draw(st.sampled_from(["sum", "mean"])), "sum")
    put(draw, config, "algorithm", draw(st.sampled_from(["auto", "direct", "fastest"])), "auto")
    if not plain:
        put(draw, config, "activation", draw(st.none() | activation_specs()), None)


def room(draw: Draw, needed: int, rank: int) -> int:
    return max(1, needed) + draw(st.integers(0, EXTRA[rank]))


@st.composite
def conv(draw: Draw, plain: bool = False) -> Layer:
    rank = draw(st.integers(1, 3))
    config: dict[str, Any] = {}
    last = layouts(draw, config, rank)
    kernel, stride, dilation = taps(draw, rank)
    mode = draw(st.sampled_from(["zeros", "reflect", "replicate", "circular"]))
    names = ["valid", "same", "same_lower", "full", *(["causal"] if rank == 1 else [])]
    padding = draw(st.sampled_from(names)) if draw(st.booleans()) else None
    if padding is None:
        padding = numeric_padding(draw, rank, 3)
    size = []
    for axis in range(rank):
        reach = extent(kernel[axis], dilation[axis])
        if isinstance(padding, str):
            whole = padding == "valid" or mode != "zeros"
            least = reach if whole else 1
        else:
            entry = padding if isinstance(padding, int) else padding[axis]
            low, high = (entry, entry) if isinstance(entry, int) else entry
            spare = {"reflect": 1, "circular": 0}.get(mode, -9)
            least = max(reach - low - high, max(low, high) + spare)
        size.append(room(draw, least, rank))
    groups, inputs, outputs = (draw(st.integers(1, most)) for most in (3, 2, 2))
    put(draw, config, "stride", written(draw, stride), 1)
    put(draw, config, "dilation", written(draw, dilation), 1)
    put(draw, config, "padding", padding, 0)
    put(draw, config, "padding_mode", mode, "zeros")
    put(draw, config, "groups", groups, 1)
    linear_fields(draw, config, plain)
    shapes = {
        "x": sample_shape(draw, last, groups * inputs, size),
        "weight": weights(draw, config, last, (groups * outputs, inputs), kernel, "OI"),
    }
    if draw(st.booleans()) and not plain:
        shapes["bias"] = (groups * outputs,)
    return Layer("conv", config, shapes, draw(seeds()))


@st.composite
def conv_transpose(draw: Draw, plain: bool = False) -> Layer:
    rank = draw(st.integers(1, 3))
    config: dict[str, Any] = {}
    last = layouts(draw, config, rank)
    kernel, stride, dilation = taps(draw, rank)
    names = ["valid", "same", "same_lower", "full", *(["causal"] if rank == 1 else [])]
    padding = draw(st.sampled_from(names)) if draw(st.booleans()) else None
    if padding is None:
        padding = numeric_padding(draw, rank, 2)
    extra = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
    pads = conv_padding(padding, (1,) * rank, tuple(kernel), stride, dilation)
    size, out = [], []
    for axis in range(rank):
        reach = extent(kernel[axis], dilation[axis])
        lost = sum(pads[axis]) - reach
        if padding in ("same", "same_lower"):
            n = 1 + draw(st.integers(0, EXTRA[rank]))
        else:
            n = room(draw, 1 - (-(lost + 1) // stride[axis]), rank)
        size.append(n)
        out.append((n - 1) * stride[axis] - lost + extra[axis])
    if padding not in ("same", "same_lower") and draw(st.integers(0, 3)) == 0:
        config["output_size"] = written(draw, out)
    else:
        put(draw, config, "output_padding", written(draw, extra), 0)
    groups, inputs, outputs = (draw(st.integers(1, most)) for most in (3, 2, 2))
    put(draw, config, "stride", written(draw, stride), 1)
    put(draw, config, "dilation", written(draw, dilation), 1)
    put(draw, config, "padding", padding, 0)
    put(draw, config, "groups", groups, 1)
    linear_fields(draw, config, plain)
    shapes = {
        "x": sample_shape(draw, last, groups * inputs, size),
        "weight": weights(draw, config, last, (groups * inputs, outputs), kernel, "IO"),
    }
    if draw(st.booleans()) and not plain:
        shapes["bias"] = (groups * outputs,)
    return Layer("conv_transpose", config, shapes, draw(seeds()))


def pooled(draw: Draw, config: dict[str, Any]) -> tuple[int, ...]:
    """Draw the fields that all pools share; return the shape of x."""
    rank = draw(st.integers(1, 3))
    last = layouts(draw, config, rank)
    kernel, stride, dilation = taps(draw, rank)
    padding: Any = draw(st.sampled_from(["valid", "same", "same_lower", None]))
    if padding is None:
        padding = numeric_padding(draw, rank, 3)
    config["kernel"] = written(draw, kernel)
    if stride == kernel or draw(st.integers(0, 3)) == 0:
        stride = kernel
    else:
        config["stride"] = written(draw, stride)
    put(draw, config, "dilation", written(draw, dilation), 1)
    put(draw, config, "padding", padding, 0)
    put(draw, config, "ceil_mode", draw(st.booleans()), False)
    size = []
    for axis in range(rank):
        reach = extent(kernel[axis], dilation[axis])
        if padding in ("same", "same_lower"):
            size.append(room(draw, 1, rank))
            continue
        pair = conv_padding(padding, (1,) * rank, tuple(kernel), stride, dilation)[axis]
        n = room(draw, reach - sum(pair), rank)
        # With ceil_mode and more high padding than kernel, the one window there is may be dropped.
        while window_count(n, pair, reach, stride[axis], config.get("ceil_mode", False)) < 1:
            n += 1
        size.append(n)
    return sample_shape(draw, last, draw(st.integers(1, 2)), size)


@st.composite
def max_pool(draw: Draw, smooth: bool = False) -> Layer:
    config: dict[str, Any] = {}
    shape = pooled(draw, config)
    put(draw, config, "pad_value", draw(st.sampled_from(["lowest", "zero"])), "lowest")
    put(draw, config, "ties", draw(st.sampled_from(["first", "all"])), "first")
    put(draw, config, "return_indices", draw(st.booleans()), False)
    kind = "smooth" if smooth else draw(st.sampled_from(["dense", "ties"]))
    return Layer("max_pool", config, {"x": shape}, draw(seeds()), kind)


@st.composite
def avg_pool(draw: Draw) -> Layer:
    config: dict[str, Any] = {}
    shape = pooled(draw, config)
    put(draw, config, "count_include_pad", draw(st.booleans()), True)
    put(draw, config, "divisor_override", draw(st.sampled_from([None, None, 1, 5, -2])), None)
    return Layer("avg_pool", config, {"x": shape}, draw(seeds()))


@st.composite
def lp_pool(draw: Draw, smooth: bool = False) -> Layer:
    config: dict[str, Any] = {}
    shape = pooled(draw, config)
    put(draw, config, "p", draw(st.sampled_from([2.0, 1, 2, 3, 1.5, 0.5, 6.0])), 2.0)
    kind = "smooth" if smooth else draw(st.sampled_from(["dense", "ties"]))
    return Layer("lp_pool", config, {"x": shape}, draw(seeds()), kind)


@st.composite
def adaptive(draw: Draw, operation: str, smooth: bool = False) -> Layer:
    rank = draw(st.integers(1, 3))
    config: dict[str, Any] = {}
    last = layouts(draw, config, rank)
    most = {1: 9, 2: 5, 3: 3}[rank]
    sizes: list[Any] = per_axis(draw, rank, 1, most)
    if draw(st.booleans()):
        sizes = [size if draw(st.booleans()) else None for size in sizes]
    config["output_size"] = written(draw, sizes)
    kind = "dense"
    if operation == "adaptive_max_pool":
        put(draw, config, "return_indices", draw(st.booleans()), False)
        kind = "smooth" if smooth else draw(st.sampled_from(["dense", "ties"]))
    shape = sample_shape(draw, last, draw(st.integers(1, 2)), per_axis(draw, rank, 1, most))
    return Layer(operation, config, {"x": shape}, draw(seeds()), kind)


@st.composite
def max_unpool(draw: Draw) -> Layer:
    rank = draw(st.integers(1, 3))
    config: dict[str, Any] = {}
    last = layouts(draw, config, rank)
    out = per_axis(draw, rank, 1, {1: 9, 2: 5, 3: 3}[rank])
    config["output_size"] = written(draw, out)
    size = per_axis(draw, rank, 1, EXTRA[rank])
    shape = sample_shape(draw, last, draw(st.integers(1, 2)), size)
    plane = int(np.prod(out))
    shapes = {"x": shape, "indices": shape}
    return Layer("max_unpool", config, shapes, draw(seeds()), plane=plane)


@st.composite
def activation(draw: Draw, smooth: bool = False) -> Layer:
    spec = draw(activation_specs())
    config = {"name": spec} if isinstance(spec, str) else spec
    shape = (draw(st.integers(0, 3)), *per_axis(draw, draw(st.integers(2, 4)), 1, 3))
    kind = "smooth" if smooth else draw(st.sampled_from(["dense", "ties"]))
    return Layer("activation", config, {"x": shape}, draw(seeds()), kind)


LAYERS: dict[str, st.SearchStrategy[Layer]] = {
    "conv": conv(),
    "conv_transpose": conv_transpose(),
    "max_pool": max_pool(),
    "avg_pool": avg_pool(),
    "lp_pool": lp_pool(),
    "adaptive_max_pool": adaptive("adaptive_max_pool"),
    "adaptive_avg_pool": adaptive("adaptive_avg_pool"),
    "max_unpool": max_unpool(),
    "activation": activation(),
}
"""Legal layers of every operation."""

LINEAR: dict[str, st.SearchStrategy[Layer]] = {
    "conv": conv(plain=True),
    "conv_transpose": conv_transpose(plain=True),
    "avg_pool": avg_pool(),
    "adaptive_avg_pool": adaptive("adaptive_avg_pool"),
}
"""Layers that are linear in x."""

CURVED: dict[str, st.SearchStrategy[Layer]] = {
    "max_pool": max_pool(smooth=True),
    "lp_pool": lp_pool(smooth=True),
    "adaptive_max_pool": adaptive("adaptive_max_pool", smooth=True),
    "activation": activation(smooth=True),
}
"""Layers that are not, at numbers away from kinks."""
