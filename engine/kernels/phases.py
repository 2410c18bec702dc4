"""The adjoint of a window in its input, as windows of stride 1 over the output's gradient.

Along one axis, dx[i] = Σ_k w[k] · dy[o] over o·stride + k·dilation − low = i. Inputs of one residue,
i = a + stride·q, meet the taps with k·dilation ≡ a + low (mod stride): k = k₀ + m·(stride/g) with
g = gcd(stride, dilation), which is a window over dy that moves by 1 with q and steps by dilation/g.
The decomposition is that of sub-pixel convolution (Shi et al. 2016, "Is the deconvolution layer the
same as a convolutional layer?").
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.geometry import Axis


@dataclass(frozen=True, slots=True)
class Residue:
    """Inputs of one residue along an axis, the taps they meet, and the window that meets them.

    `taps` are in falling order, as `window` reads them over dy. Where no tap meets these inputs,
    `window` is None and their gradient 0.
    """

    inputs: slice
    taps: slice
    window: Axis | None


def residues(axis: Axis) -> list[Residue]:
    """Every residue of an axis's inputs modulo its stride."""
    return [_residue(axis, a) for a in range(min(axis.stride, axis.size))]


def _residue(axis: Axis, a: int) -> Residue:
    step = axis.alike
    inputs = slice(a, None, axis.stride)
    reached = (
        tap
        for tap in range(min(step, axis.kernel))
        if (tap * axis.dilation - a - axis.low) % axis.stride == 0
    )
    first = next(reached, None)
    if first is None:
        return Residue(inputs, slice(0, 0), None)
    count = -(-(axis.kernel - first) // step)
    last = first + (count - 1) * step
    dilation = axis.dilation * step // axis.stride
    size = -(-(axis.size - a) // axis.stride)
    # The window of the first input begins at the output whose last tap falls on it.
    low = (last * axis.dilation - a - axis.low) // axis.stride
    high = (size - 1) + (count - 1) * dilation + 1 - low - axis.out
    end = first - step
    taps = slice(last, end if end >= 0 else None, -step)
    return Residue(inputs, taps, Axis(axis.out, count, 1, dilation, low, high, size))
