"""Whatever comes as a body is read or refused by name, soon, and leaves nothing behind.

`FUZZ_EXECUTIONS` says how many mutants are tried for each format (`make fuzz` tries more than the
normal run), `FUZZ_SEED` which ones. A body that does anything else is kept in the corpus, and so is
tried again for ever.
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
from collections import Counter
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.decoding import COMPUTED, FORMATS, OPERATIONS, corpus, execute
from tests.fuzz.mutate import mutants

EXECUTIONS = int(os.environ.get("FUZZ_EXECUTIONS", "30000"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))

ENOUGH = 10_000
"""From so many on, every way to end is met."""

CLOSELY = 10
"""Of so many mutants, one is read in all ways."""

LARGEST_GROWTH = 64 << 20
"""Of the peak of memory, over all executions of a format."""


@pytest.mark.parametrize("form", FORMATS)
def test_the_corpus(form: str) -> None:
    outcomes = Counter(execute(body, form) for body in corpus(form))
    assert outcomes["MalformedBody"] > 20
    assert outcomes.total() >= 50


@pytest.mark.parametrize("form", FORMATS)
def test_mutants_of_the_corpus(form: str) -> None:
    seeds = list(corpus(form))
    for body in seeds:  # so that what is cached is there
        execute(body, form)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bodies = itertools.islice(mutants(seeds, form, SEED), EXECUTIONS)
    outcomes = Counter(
        execute(body, form, origin, closely=number % CLOSELY == 0)
        for number, (origin, body) in enumerate(bodies)
    )
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert outcomes.total() == EXECUTIONS
    if EXECUTIONS >= ENOUGH:
        # Some come through to the end, or else nothing behind the decoder was tried.
        assert outcomes[COMPUTED] > 0
        assert len(outcomes) > 4, outcomes
    assert grown * 1024 < LARGEST_GROWTH


NUMBERS = (
    st.integers(-3, 6)
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.booleans()
    | st.none()
    | st.sampled_from([2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1])
)
NAMES = st.sampled_from(
    ["stride", "padding", "dilation", "groups", "kernel", "output_size", "layout", "weight_layout",
     "activation", "name", "alpha", "p", "algorithm", "padding_mode", "ceil_mode", "ties",
     "divisor_override", "output_padding", "input_shape", "return_indices", "same", "NHWC", "relu"]
) | st.text(max_size=3)  # fmt: skip
VALUES = st.recursive(
    NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=6,
)
SHAPES = st.lists(st.integers(0, 5) | NUMBERS, max_size=6)


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    """Mostly tensors as they should be, with one thing or another that is not."""
    shape = draw(st.lists(st.integers(1, 4), min_size=3, max_size=4) | SHAPES)
    dtype = draw(
        st.sampled_from(["float32", "float64", "float16", "int64", "uint8", "<f4", ">f4"]) | NAMES
    )
    sizes = {"float64": 8, "int64": 8, "float16": 2, "uint8": 1}
    count = sizes.get(dtype, 4)
    for length in shape:
        count *= length if type(length) is int and 0 <= length < 10 else 1
    data = draw(st.binary(min_size=1, max_size=16)) * (count + 1)
    value: dict[str, Any] = {"dtype": dtype, "shape": shape, "data": data[: min(count, 4096)]}
    if draw(st.integers(0, 9)) == 0:
        value[draw(NAMES)] = draw(VALUES)
    return value


BODIES = st.fixed_dictionaries(
    {},
    optional={
        "x": tensors(), "weight": tensors(), "bias": tensors(), "dy": tensors(),
        "indices": tensors(), "config": st.dictionaries(NAMES, VALUES, max_size=4) | VALUES,
        "wants": VALUES, "shapes": st.dictionaries(st.sampled_from(["x", "weight"]), SHAPES) | VALUES,
        "dtype": NAMES,
    },
)  # fmt: skip


@settings(
    max_examples=max(200, EXECUTIONS // 100),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(BODIES)
def test_bodies_of_the_right_form_and_any_content(body: dict[str, Any]) -> None:
    execute(msgpack.packb(body), "msgpack")


def test_every_operation_is_tried() -> None:
    assert len(OPERATIONS) == 9
