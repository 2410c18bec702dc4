"""Convolution, transposed convolution and pooling, forward and backward, on NumPy alone.

    engine.forward("conv", {"padding": 1}, x=x, weight=weight)["y"]
    engine.backward("conv", {"padding": 1}, x=x, weight=weight, dy=dy)["dweight"]

Names, fields, defaults and errors are those of the HTTP contract; the service is this, made reachable.
"""

from engine.arena import SCRATCH_BYTES
from engine.calls import Call, Cost
from engine.errors import EngineError, Issue, Stopped
from engine.execute import run, split
from engine.face import Planned, backward, forward, operations, plan
from engine.plans import Plan, TensorSpec
from engine.resolve import prepare
from engine.threads import set_threads, set_wakeful

__all__ = [
    "SCRATCH_BYTES",
    "Call",
    "Cost",
    "EngineError",
    "Issue",
    "Plan",
    "Planned",
    "Stopped",
    "TensorSpec",
    "backward",
    "forward",
    "operations",
    "plan",
    "prepare",
    "run",
    "set_threads",
    "set_wakeful",
    "split",
]
