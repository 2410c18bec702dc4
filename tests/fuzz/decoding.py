"""One execution: a body through decoder, validation and limits on cost, as a request goes.

What was read is compared with an independent reading, and a place that a refusal names is followed. Of some
bodies it is looked too whether they come to the same on every way that there is to read them.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import engine
from app.cost import check_cost, tensor_bytes
from app.wire import Decoder, Exchange, decode_plan, encode_map, negotiate
from tests.app.limits import cost_limits
from tests.fuzz import readings
from tests.fuzz.independent import check_request
from tests.fuzz.outcomes import LIMITS, REFUSALS
from tests.fuzz.places import check_places

CORPUS = Path(__file__).parent / "corpus"

FORMATS = {"msgpack": "application/vnd.msgpack", "json": "application/json"}

PATIENCE_S = 2.0
"""No body of the sizes that are tried may take so long, without what other processes take."""

DECODER = Decoder(LIMITS)
OPERATIONS = sorted(engine.operations())
COMPUTED, PLANNED = "computed", "planned"
"""How an execution ends whose body is one that some operation takes."""

CHEAP = 1e7
"""Work of which a body may ask in an execution; the kernels have tests of their own."""


class Finding(AssertionError):
    """A body that did what none may do; it has been kept in the corpus."""


def corpus(form: str) -> Iterator[bytes]:
    """The kept bodies of a format, always in the same order."""
    for path in sorted((CORPUS / form).iterdir()):
        yield path.read_bytes()


def execute(body: bytes, form: str, origin: bytes = b"", *, closely: bool = True) -> str:
    """Do with a body what the service would, for every operation; returns how it ended.

    Args:
        origin: the body of which it is a mutant.
        closely: read it in other ways too, which takes longer than all the rest.

    Raises:
        Finding: it ended with an error that has no name, took too long, or was not
            read as it should be.
    """
    exchange = negotiate(FORMATS[form], None)
    started = time.process_time()
    try:
        ended, planned = _computed(body, exchange), _planned(body, exchange)
        took = time.process_time() - started
        if closely:
            _look(body, form, origin, exchange)
    except Exception as error:
        raise Finding(_keep(body, form, repr(error))) from error
    if took > PATIENCE_S:
        raise Finding(_keep(body, form, "it took too long"))
    return planned if ended != COMPUTED and planned == PLANNED else ended


def _look(body: bytes, form: str, origin: bytes, exchange: Exchange) -> None:
    """Read a body in every way that there is."""
    usual = readings.usually(body, exchange)
    readings.check_tight(body, exchange, usual)
    if form == "msgpack":
        readings.check_known(body, origin, exchange, usual)
        readings.check_edges(body, exchange)
        readings.check_lifted(body)


def _computed(body: bytes, exchange: Exchange) -> str:
    """How it ends as a request to compute: with every operation's refusal, or as `computed`."""
    try:
        request, _ = DECODER.decode(body, exchange)
    except REFUSALS as error:
        if exchange.request == "json":
            check_places(error.issues, body)
        return type(error).__name__
    check_request(request, body, exchange.request)
    specs = {
        name: engine.TensorSpec(array.shape, array.dtype.name)
        for name, array in request.tensors.items()
    }
    outcomes = []
    for operation, action in itertools.product(OPERATIONS, ("forward", "backward")):
        try:
            call, samples = engine.prepare(
                operation, action, request.config, specs, cast(Any, request.wants)
            )
            cost = call.cost(samples)
            check_cost(cost, cost_limits())
            if cost.flops + tensor_bytes(cost) + 1e3 * cost.steps < CHEAP:
                engine.run(call, request.tensors, (samples,))
            outcomes.append(COMPUTED)
        except REFUSALS as error:
            outcomes.append(type(error).__name__)
    return COMPUTED if COMPUTED in outcomes else outcomes[0]


def _planned(body: bytes, exchange: Exchange) -> str:
    """How it ends as a request for a plan."""
    try:
        plan = decode_plan(body, exchange, LIMITS)
    except REFUSALS as error:
        return type(error).__name__
    outcomes = []
    for operation in OPERATIONS:
        try:
            planned = engine.plan(operation, plan.config, plan.shapes, plan.dtype)
            check_cost(planned.call.cost(planned.samples), cost_limits())
            encode_map(planned.report(), exchange)
            outcomes.append(PLANNED)
        except REFUSALS as error:
            outcomes.append(type(error).__name__)
    return PLANNED if PLANNED in outcomes else outcomes[0]


def _keep(body: bytes, form: str, what: str) -> str:
    path = CORPUS / form / f"found-{hashlib.blake2b(body, digest_size=8).hexdigest()}"
    path.write_bytes(body)
    return f"{what}; kept as {path.name}"
