"""An independent, slow reference: every operation as plain loops over its definition, in float64.

Written from the contract alone, never from the engine's code, so that the two can disagree.
It trusts its input: only legal configurations are passed to it.

Where the contract is silent, the reference takes these decisions:

* A named padding of conv_transpose is that of the convolution it is the adjoint of, except `same`,
  whose total is what makes the output input x stride (a negative total turns into output padding).
* Among several NaN in a window the first one wins; with `ties` "all" every NaN does.
* `pad_value` "zero": a padded cell takes part in the comparison; where it wins, the index is -1
  and its gradient is dropped. What `ceil_mode` adds never counts.
* `ties` "all" gives the whole gradient to every tie; it is not shared out.
* An average over no cell is 0, and so is a mean gradient over no sample.
* max_unpool skips index -1; of several writes to one place the last in row-major order stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.engine.reference import activations, linear, pools
from tests.engine.reference.activations import NAMES as ACTIVATIONS

__all__ = ["ACTIVATIONS", "OPERATIONS", "backward", "forward"]

Arrays = dict[str, np.ndarray]

OPERATIONS: dict[str, tuple[Callable[..., Arrays], Callable[..., Arrays]]] = {
    "conv": (linear.conv_forward, linear.conv_backward),
    "conv_transpose": (linear.transpose_forward, linear.transpose_backward),
    "max_pool": (pools.max_forward, pools.max_backward),
    "avg_pool": (pools.avg_forward, pools.avg_backward),
    "lp_pool": (pools.lp_forward, pools.lp_backward),
    "adaptive_max_pool": (pools.adaptive_max_forward, pools.adaptive_max_backward),
    "adaptive_avg_pool": (pools.adaptive_avg_forward, pools.adaptive_avg_backward),
    "max_unpool": (pools.unpool_forward, pools.unpool_backward),
    "activation": (activations.forward, activations.backward),
}


def forward(operation: str, config: Mapping[str, Any] | None = None, **tensors: Any) -> Arrays:
    """Return y (and indices where asked for) of `operation`, in float64."""
    return OPERATIONS[operation][0](dict(config or {}), _float64(tensors))


def backward(
    operation: str,
    config: Mapping[str, Any] | None = None,
    wants: Sequence[str] | None = None,
    **tensors: Any,
) -> Arrays:
    """Return the gradients of `operation`, in float64; only those in `wants` where it is given."""
    arrays = _float64(tensors)
    gradients = OPERATIONS[operation][1](dict(config or {}), arrays)
    if wants is None:
        return {name: g for name, g in gradients.items() if name != "dbias" or "bias" in arrays}
    if "y" in wants:
        gradients["y"] = forward(operation, config, **_without(tensors, "dy"))["y"]
    return {name: gradients[name] for name in wants}


def _float64(tensors: Mapping[str, Any]) -> Arrays:
    return {
        name: np.asarray(a, np.int64 if name == "indices" else np.float64)
        for name, a in tensors.items()
    }


def _without(tensors: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in tensors.items() if key != name}
