"""Run the engine on every one of PyTorch's own operator samples, some thousands, and report.

    python -m tests.data.check_opinfo          (from the repository root)

Needs PyTorch and expecttest. The recording holds a part of these; this is for a change of kernels.
"""

from __future__ import annotations

import sys
from collections import Counter

import torch

import engine
from tests.data.pytorch_cases import answers, forward
from tests.data.pytorch_opinfo import cases
from tests.data.recorded import Case, inputs
from tests.engine.compare import assert_close


def with_dy(case: Case) -> Case:
    """PyTorch's y settles the shape of dy."""
    tensors = {name: torch.from_numpy(a) for name, a in inputs(case).items()}
    case["shapes"]["dy"] = list(forward(case, tensors)[0].shape)
    return case


def check(case: Case) -> None:
    """Hold forward, backward and, for max_pool, backward from indices to PyTorch's answers."""
    operation, config, want = case["operation"], case["config"], answers(case)
    given = inputs(case)
    dy = given.pop("dy")
    got = engine.forward(operation, config, **given)
    if operation == "max_unpool":
        del given["x"]
    got |= engine.backward(operation, config, None, **given, dy=dy)
    assert_close(got, want, about=case)
    if operation == "max_pool" and "indices" in got:
        config = config | {"input_shape": case["shapes"]["x"]}
        again = engine.backward(operation, config, indices=got["indices"], dy=dy)
        assert_close(again, {"dx": want["dx"]}, about=case)


def main() -> int:
    """Count what passes and print what does not."""
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for case in cases():
        try:
            check(with_dy(case))
        except (AssertionError, engine.EngineError) as error:
            failed[case["operation"]] += 1
            print(f"{case}\n{str(error)[:500]}\n")
        else:
            passed[case["operation"]] += 1
    print(f"passed {passed.total()}: {dict(passed)}")
    print(f"failed {failed.total()}: {dict(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
