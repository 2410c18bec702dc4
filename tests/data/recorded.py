"""The format of recorded cases: cases as JSON text, answers as bytes grouped by significance.

Without pickle: the archive is read with allow_pickle=False.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.values import distinct_indices, numbers

FILE = Path(__file__).with_name("pytorch.npz")

Arrays = dict[str, np.ndarray]
Case = dict[str, Any]


def pack(cases: Sequence[Case], answers: Sequence[Arrays]) -> Arrays:
    """The archive's arrays: `cases` (JSON as bytes) and one table of byte planes for each dtype."""
    parts: dict[str, list[np.ndarray]] = {}
    described = []
    for case, answer in zip(cases, answers, strict=True):
        listing = [[name, str(a.dtype), list(a.shape)] for name, a in answer.items()]
        described.append(case | {"answer": listing})
        for a in answer.values():
            parts.setdefault(str(a.dtype), []).append(a.reshape(-1))
    packed = {"cases": np.frombuffer(json.dumps(described).encode(), np.uint8)}
    for dtype, arrays in parts.items():
        joined = np.concatenate(arrays)
        packed[dtype] = joined.view(np.uint8).reshape(-1, joined.itemsize).T
    return packed


def replay(file: Path = FILE) -> Iterator[tuple[Case, Arrays]]:
    """Every recorded case with its answer."""
    with np.load(file, allow_pickle=False) as archive:
        cases = json.loads(archive["cases"].tobytes())
        tables = {
            dtype: np.ascontiguousarray(archive[dtype].T).view(dtype).reshape(-1)
            for dtype in archive.files
            if dtype != "cases"
        }
    places = dict.fromkeys(tables, 0)
    for case in cases:
        answer = {}
        for name, dtype, shape in case.pop("answer"):
            start = places[dtype]
            places[dtype] += int(np.prod(shape, dtype=np.int64))
            answer[name] = tables[dtype][start : places[dtype]].reshape(shape)
        yield case, answer


def inputs(case: Case, names: Sequence[str] = ("x", "weight", "bias", "dy")) -> Arrays:
    """The case's tensors; each name has a stream of its own."""
    made = {}
    for place, name in enumerate(names):
        if name in case["shapes"]:
            kind = case["kind"] if name == "x" else "dense"
            seed = case["seed"] * 8 + place
            made[name] = numbers(seed, case["shapes"][name], kind, case["dtype"])
    for place in case.get("nan", []):
        made["x"].reshape(-1)[place] = np.nan
    if "indices" in case["shapes"]:
        plane = int(np.prod(case["config"]["output_size"]))
        made["indices"] = distinct_indices(case["seed"] * 8 + 7, case["shapes"]["indices"], plane)
    return made
