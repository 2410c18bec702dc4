"""What `conv` and `conv_transpose` share: config fields, paddings, the fused activation, gradients.

Both rest on one `Correlation` and its adjoints with roles exchanged: the input gradient of one is the
forward of the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.activation_option import ACTIVATION, require_held
from engine.arena import PART_BYTES, SCRATCH_BYTES
from engine.arrangement import Arrangement
from engine.errors import EngineError, ShapeMismatch, fail
from engine.geometry import Axis
from engine.kernels.activations.table import IDENTITY, Activation, activate, activate_backward
from engine.kernels.correlation import Correlation
from engine.kernels.dispatch import adjoint_algorithm, forward_algorithm, weight_algorithm
from engine.kernels.requests import average_by_request, sum_by_request
from engine.kernels.weight_bytes import forward_bytes, rearranged_bytes
from engine.layouts import fitting
from engine.operation import Operation, Tails
from engine.options import Choice, Flag, Integer, Letters, Padding, Pads, PerAxis, option
from engine.plans import Action, Plan
from engine.reading import Reading, read_shapes
from engine.threads import for_each

Array = NDArray[Any]

ALGORITHMS = ("auto", "fastest", "direct", "winograd")
PADDINGS = ("valid", "same", "same_lower", "full", "causal")


@dataclass(frozen=True)
class ConvolutionConfig:
    """The fields of both convolutions."""

    stride: tuple[int, ...] = option(PerAxis(1), "Step between windows, per spatial axis.", 1)
    padding: str | Pads = option(
        Padding(PADDINGS),
        "Padding: an integer, one per axis, a [low, high] pair per axis, or a name.",
        0,
    )
    dilation: tuple[int, ...] = option(
        PerAxis(1), "Step between the taps of a window; 1 is none.", 1
    )
    groups: int = option(Integer(1), "Groups of channels that do not see each other.", 1)
    flip_kernel: bool = option(
        Flag(), "True reverses the kernel: convolution as in mathematics.", False
    )
    layout: str | None = option(
        Letters.of_samples(), "Order of the axes of x, y and their gradients.", None
    )
    weight_layout: str | None = option(
        Letters.of_weights(), "Order of the axes of weight and its gradient.", None
    )
    activation: Activation | None = option(ACTIVATION, "Activation applied to the output.", None)
    grad_reduction: str = option(
        Choice(("sum", "mean")), "Whether dweight and dbias are summed or averaged over samples.",
        "sum",
    )  # fmt: skip
    algorithm: str = option(
        Choice(ALGORITHMS),
        "How to compute: auto keeps full precision, direct is a plain sum, and winograd is run where"
        " it can be (3×3, stride 1); the answer says what was chosen.",
        "auto",
    )

    @cached_property
    def fused(self) -> Activation | None:
        """The activation, or None where it would change nothing."""
        return None if self.activation == IDENTITY else self.activation


class Convolution(Operation):
    """The common part of conv and conv_transpose.

    Class attributes:
        canonical: the order of the weight's first two axes.
        adjoint: True where forward is the adjoint of a correlation.
    """

    forward_inputs: ClassVar[Mapping[str, bool]] = {"x": True, "weight": True, "bias": False}
    backward_inputs: ClassVar[Mapping[str, bool]] = {
        "x": True,
        "weight": True,
        "bias": False,
        "dy": True,
    }
    canonical: ClassVar[str]
    adjoint: ClassVar[bool] = False
    algorithms = ALGORITHMS

    @abstractmethod
    def apply(self, c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
        """y (N, G, C', *P) from x (N, G, C, *S), weights (G, O, C·K) and bias (G, C')."""

    @abstractmethod
    def apply_input(self, c: Correlation, dy: Array, w: Array, dx: Array) -> None:
        """dx (N, G, C, *S) from dy (N, G, C', *P)."""

    @abstractmethod
    def apply_weight(
        self, c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array
    ) -> None:
        """dw (R, G, O, C, *K) from x (N, G, C, *S) and dy (N, G, C', *P)."""

    def gradients(self, given: Sequence[str]) -> tuple[str, ...]:
        return ("dx", "dweight", *(("dbias",) if "bias" in given else ()))

    def wantable(self, given: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ("y", "dx", "dweight", "dbias")

    def algorithm(self, plan: Plan, made: Sequence[str]) -> str:
        found = {self._runs(name, plan.geometry.correlation) for name in made if name != "dbias"}
        return "winograd" if "winograd" in found else "direct"

    def _runs(self, name: str, c: Correlation) -> str:
        """What makes one result."""
        if name == "dweight":
            return weight_algorithm(c)
        return adjoint_algorithm(c) if self.adjoint == (name == "y") else forward_algorithm(c)

    def sight(self, axis: Axis) -> int:
        """Inputs from the first to the last that one output sees."""
        return axis.extent

    @abstractmethod
    def fits(self, groups: int, channels: int, outer: int, inner: int) -> bool:
        """Whether weights whose first axes are `outer` and `inner` go with `channels` of x."""

    def reading(self, config: ConvolutionConfig, tails: Tails) -> Reading:
        """Layouts, channels and taps of the tensors, checked against each other; see `read_shapes`."""
        return read_shapes(config.layout, config.weight_layout, self.canonical, tails)

    def misfit(
        self, config: ConvolutionConfig, tails: Tails, axis: int, what: str, expected: int
    ) -> EngineError:
        """The error of weights whose `axis` is not that of x, and the layouts in which it would be."""
        weight = tails["weight"]
        layouts, fits = (config.layout, config.weight_layout), partial(self.fits, config.groups)
        meant = fitting(layouts, tails["x"], weight, self.canonical, fits)
        loc, msg = ("weight", "shape", axis), f"{what} do not fit x{meant}"
        return fail(ShapeMismatch, loc, msg, str(expected), weight[axis])

    def planned(
        self,
        config: ConvolutionConfig,
        tails: Tails,
        dtype: str,
        reading: Reading,
        y: tuple[int, ...],
        outputs: int,
        correlation: Correlation,
    ) -> Plan:
        """Put the plan together from what the operation has resolved."""
        activation = 0
        if config.fused:
            require_held(config.fused, dtype, ("config", "activation"))
            activation = config.fused.workspace_bytes(correlation.itemsize)
        geometry = Arrangement(
            _first_of(correlation), reading.channels_last, reading.order, config.flip_kernel
        )
        return Plan(
            operation=self.name,
            config=config,
            dtype=dtype,
            tails=(
                ("x", tails["x"]),
                ("weight", tails["weight"]),
                ("bias", (outputs,)),
                ("y", y),
                ("dy", y),
                ("dx", tails["x"]),
                ("dweight", tails["weight"]),
                ("dbias", (outputs,)),
            ),
            padding=tuple((axis.low, axis.high) for axis in correlation.axes),
            receptive_field=tuple(self.sight(axis) for axis in correlation.axes),
            flops=(correlation.flops, 2 * correlation.flops),
            steps=correlation.steps,
            geometry=geometry,
            algorithm=self._runs("y", correlation),
            recomputed=config.fused is not None,
            # Beside the scratch, a block of partial sums may be copied; the activation comes after that.
            scratch_bytes=SCRATCH_BYTES + max(PART_BYTES, activation),
        )

    def scratch_bytes(self, plan: Plan, action: Action) -> int:
        # Which way the adjoint in x goes takes longer to find out than all else of a plan.
        both = action == "backward" or self.adjoint
        held = rearranged_bytes if both else forward_bytes
        return plan.scratch_bytes + held(plan.geometry.correlation, plan.geometry.ordered)

    def settles(self, plan: Plan, name: str) -> bool:  # noqa: ARG002
        return name in ("dx", "y")

    def forward(self, plan: Plan, given: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        self._linear(plan, given, out["y"])
        if plan.config.fused:
            activate(plan.config.fused, out["y"], out["y"])

    def backward(
        self,
        plan: Plan,
        given: Mapping[str, Array],
        rows: Sequence[int],
        out: Mapping[str, Array],
    ) -> None:
        geometry: Arrangement = plan.geometry
        dy = given["dy"]
        if plan.config.fused:
            z = np.empty(dy.shape, dy.dtype)
            self._linear(plan, given, z)
            if "y" in out:
                activate(plan.config.fused, z, out["y"])
            activate_backward(plan.config.fused, z, dy, z)
            dy = z
        elif "y" in out:
            self._linear(plan, given, out["y"])
        c, upstream = geometry.correlation, geometry.grouped(dy)
        both = {
            "dx": lambda: self.apply_input(
                c,
                upstream,
                geometry.weights(given["weight"], adjoint=not self.adjoint),
                geometry.grouped(out["dx"]),
            ),
            "dweight": lambda: self.apply_weight(
                c, geometry.grouped(given["x"]), upstream, rows, geometry.gradients(out["dweight"])
            ),
        }
        wanted = ((name,) for name in both if name in out)  # so threads wait for each other once
        for_each(lambda name: both[name](), wanted, 2 * c.flops * len(dy), branches=True)
        if "dbias" in out:
            sum_by_request(dy, rows, out["dbias"], channels_last=geometry.channels_last)
        if plan.config.grad_reduction == "mean":
            for name in ("dweight", "dbias"):
                if name in out:
                    average_by_request(out[name], rows)

    def _linear(self, plan: Plan, given: Mapping[str, Array], y: Array) -> None:
        geometry: Arrangement = plan.geometry
        c, bias = geometry.correlation, given.get("bias")
        if bias is not None:
            bias = bias.reshape(c.groups, -1)
        weights = geometry.weights(given["weight"], adjoint=self.adjoint)
        self.apply(c, geometry.grouped(given["x"]), weights, bias, geometry.grouped(y))


@lru_cache(maxsize=1024)
def _first_of(c: Correlation) -> Correlation:
    """The first of all equal correlations: what is kept by it is found without comparing integers."""
    return c
