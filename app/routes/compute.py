"""POST /v1/{operation}/{action}: the way of a request, from its bytes to those of its answer.

A plain ASGI application: the body goes from the socket to the decoder, and no framework looks at
tensors on the way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from time import monotonic, perf_counter
from traceback import clear_frames
from typing import Any, cast

from starlette.types import Receive, Scope, Send

import engine
from app.access import Access
from app.addresses import network_of
from app.cost import CostLimits, check_cost, tensor_bytes
from app.dispatcher import Dispatcher
from app.edge import HEAD, RECORD
from app.errors import (
    BodyTooLarge,
    DeadlineExceeded,
    LimitExceeded,
    MalformedBody,
    MethodNotAllowed,
    QueueFull,
    ShuttingDown,
)
from app.gate import Gate, Known
from app.heads import NO_HEAD
from app.jobs import Answer, Job, Write
from app.lifecycle import Lifecycle
from app.quotas import Quotas
from app.record import Record
from app.reservation import Reservation
from app.routes.answering import about, in_pieces, info_of, listed, send_answer, whole
from app.routes.body import IN_PLACE_BYTES, Intake
from app.routes.departure import unless_gone
from app.routes.head import Asked, deadline_of, passed, text_of, visitor_of
from app.routes.keys import Keys
from app.routes.planning import planned
from app.routes.reading import Reader
from app.routes.sizes import Sizes
from app.scribe.desks import Desks
from app.settings import Settings
from app.wire import Body, Exchange, Form, Piece, encode_map, negotiate
from engine.errors import EngineError
from engine.resolve import dtype_name

_ALONE = nullcontext()

_FAULTS = (EngineError, BodyTooLarge, LimitExceeded, MalformedBody)
"""What can be wrong with a body, which is told before the deadline or not at all."""


class Compute:
    """The endpoint; one for each application."""

    def __init__(
        self,
        settings: Settings,
        dispatcher: Dispatcher,
        intake: Intake,
        lifecycle: Lifecycle,
        gate: Gate,
        access: Access,
        cost: CostLimits,
        desks: Desks | None,
        quotas: Quotas,
    ) -> None:
        self._settings = settings
        # The least limit on a body, and its setting, which the refusal names. What could not be held if it
        # were alone is too large, and not too early.
        limits = ("max_body_bytes", "max_held_bytes", "max_json_bytes")
        found = [(getattr(settings, name), name) for name in limits]
        self._limit, self._json_limit = min(found[:2]), min(found)
        self._dispatcher = dispatcher
        self._intake = intake
        self._lifecycle = lifecycle
        self._gate = gate
        self._access = access
        self._keys = Keys(engine.operations())
        self._reader = Reader(settings, desks)
        self._desks = desks
        self._cost_limits = cost
        self._sizes = Sizes()
        self._quotas = quotas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; every refusal is an exception."""
        record: Record = scope[RECORD]
        record.operation = record.action = "unknown"
        record.operation = self._keys.operation(scope["path_params"]["operation"])
        record.action = self._keys.action(scope["path_params"]["action"])
        if record.method != "POST":
            raise MethodNotAllowed(("POST",), record.method)
        headers = record.headers
        caller = self._access.check(headers.get(b"authorization")) or network_of(record.client)
        exchange = negotiate(
            text_of(headers, b"content-type"),
            text_of(headers, b"accept"),
            text_of(headers, b"content-encoding"),
        )
        deadline = deadline_of(record, self._settings)
        if not self._lifecycle.takes(record.started):
            raise ShuttingDown
        visitor = visitor_of(record, scope)
        asked = Asked(record, scope, receive, exchange, deadline, caller, visitor)
        reserved = self._reserve(asked) if record.action != "plan" else None
        if reserved is not None:
            asked = asked._replace(reserved=reserved)
        try:
            if self._desks is not None and exchange.request == "json":
                self._desks.check_room(record.body_length, visitor)
            self._quotas.enter(caller, monotonic(), visitor)
            try:
                await self._serve(asked, send)
            finally:
                self._quotas.leave(caller, monotonic())
        finally:
            if reserved is not None:
                reserved.end()

    async def _serve(self, asked: Asked, send: Send) -> None:
        """Serve a request that is let in."""
        held = 0
        try:
            body = await self._read(asked)
            held = asked.record.bytes_in
            with self._company(asked.exchange, len(body)):
                if asked.record.action == "plan":
                    answer: Sequence[Piece] = [await self._plan(body, asked)]
                else:
                    # Others may have taken the room while the body came.
                    if asked.reserved is None:
                        self._dispatcher.check_room(asked.visitor)
                    answer = await self._compute(await self._job(body, asked), asked, len(body))
            if asked.late:
                raise DeadlineExceeded
            self._intake.release(held)
            body, held = b"", 0  # nobody needs it any more, however long the client takes
            self._intake.send(asked.caller, size := sum(map(len, answer)))
            try:
                await send_answer(send, asked.exchange.media_type, answer, size)
            finally:
                self._intake.sent(asked.caller, size)
        except BaseException as error:
            # The frames that it came through hold the body, some of them in a circle.
            clear_frames(error.__traceback__)
            if isinstance(error, DeadlineExceeded):
                raise passed(asked.record, self._settings, error.detail) from None
            if isinstance(error, _FAULTS) and asked.late:
                raise passed(asked.record, self._settings) from None
            raise
        finally:
            self._intake.release(held)

    def _company(self, exchange: Exchange, nbytes: int) -> AbstractContextManager[None]:
        """Counts a request in JSON while it is served; with others, it is read beside the event loop."""
        in_json = exchange.request == "json" or exchange.tensors == "list"
        return self._desks.company(nbytes) if self._desks and in_json else _ALONE

    def _reserve(self, asked: Asked) -> Reservation | None:
        """See, before its body is read, that there is room for a request.

        Returns:
            A place kept for it, where its body is large.

        Raises:
            QueueFull: there is none; the gate refuses those that begin alike, without asking here again.
            ShuttingDown, WorkersUnavailable: none is taken at all.
        """
        record, scope = asked.record, asked.scope
        length = record.body_length
        if length > self._limit[0]:
            return None  # it is refused for that, now and later
        least = expected = max(1, length) if asked.exchange.request == "msgpack" else 1
        try:
            if least >= IN_PLACE_BYTES:
                expected = self._sizes.expected(record, asked.caller, length)
                return self._dispatcher.reserve(asked.visitor, expected, record)
            self._dispatcher.check_room(asked.visitor, least)
        except QueueFull:
            known = Known(record.operation, record.action, length, least, expected)
            self._gate.remember(scope.get(HEAD, NO_HEAD), scope["headers"], known)
            raise
        return None

    async def _read(self, asked: Asked) -> Body:
        """Receive the body; see `Intake.read` for what it raises."""
        limit, setting = self._json_limit if asked.exchange.request == "json" else self._limit
        computed = asked.exchange.request == "msgpack" and asked.record.action != "plan"
        aligned = self._reader.largest if computed else None
        return await self._intake.read(asked, limit, setting, aligned)

    async def _plan(self, body: Body, asked: Asked) -> bytes:
        """Answer the action `plan`, here and at once: it is a matter of a few integers."""
        record = asked.record
        started = perf_counter()
        request = await self._reader.plan_request(body, asked)
        self._keys.refuse_others(record.operation, record.action, request.extra)
        decoded = perf_counter()
        plan = planned(record.operation, request)
        check_cost(plan.call.cost(plan.samples), self._cost_limits)
        report = plan.report()
        computed = perf_counter()
        answer = encode_map(report, asked.exchange)
        record.stages["decode"] = decoded - started
        record.stages["compute"] = computed - decoded
        record.stages["encode"] = perf_counter() - computed
        return answer

    async def _job(self, body: Body, asked: Asked) -> Job:
        """Decode the body, and prepare the call that it asks for.

        Raises:
            MalformedBody, LimitExceeded, engine.EngineError: what is wrong with the body.
            LimitExceeded: the answer would have too many numbers in lists of JSON.
        """
        record, exchange = asked.record, asked.exchange
        started = perf_counter()
        request, form = await self._reader.request(body, asked)
        if form is None:
            self._keys.refuse_others(record.operation, record.action, request.extra)
            specs: Mapping[str, engine.TensorSpec] = {
                name: engine.TensorSpec(array.shape, dtype_name(array.dtype))
                for name, array in request.tensors.items()
            }
            call, samples = engine.prepare(
                record.operation, record.action, request.config, specs, cast(Any, request.wants)
            )
        else:
            specs = form.specs
            call, samples = _prepared(record.operation, record.action, form)
        most = self._settings.max_json_numbers
        numbers = listed(call, samples, most) if exchange.tensors == "list" else 0
        record.stages["decode"] = perf_counter() - started
        return Job(
            call=call,
            samples=samples,
            config=request.config,
            specs=specs,
            wants=call.wants if record.action == "backward" else None,
            tensors=request.tensors,
            deadline=asked.deadline,
            caller=asked.caller,
            visitor=asked.visitor,
            encode=partial(whole, call, exchange),
            pieces=partial(in_pieces, call, exchange) if exchange.response == "msgpack" else None,
            write=self._write(call, asked, numbers),
            reserved=asked.reserved,
        )

    def _write(self, call: engine.Call, asked: Asked, numbers: int) -> Write | None:
        """Writes an answer beside the event loop; None where so few numbers in lists need it not."""
        desks = self._desks
        if desks is None or not desks.writes(numbers):
            return None

        def write(answer: Answer) -> Awaitable[memoryview]:
            info, exchange = info_of(call, answer), asked.exchange
            return desks.write(answer.tensors, info, exchange, asked.caller, asked.deadline)

        return write

    async def _compute(self, job: Job, asked: Asked, length: int) -> Sequence[Piece]:
        """Have a job computed whose body had `length` bytes; returns the pieces of the answer.

        Raises:
            ClientGone: the client left. QueueFull: the caller has too many answers to take already.
            Exception: what `Dispatcher.submit` raises.
        """
        record, cost = asked.record, job.call.cost(job.samples)
        size = about(cost.output_bytes, asked.exchange)
        if max(length, size) >= IN_PLACE_BYTES:
            # What is refused for ever neither waits nor is expected.
            check_cost(cost, self._cost_limits)
        self._sizes.asked(record, asked.caller, length, nbytes := tensor_bytes(cost))
        promised = self._intake.promise(asked.caller, size)
        try:
            done = await unless_gone(self._dispatcher.submit(job), asked.scope, asked.receive)
        finally:
            self._intake.made(asked.caller, promised)
        self._sizes.computed(record, asked.caller, length, nbytes)
        record.stages["queue"] = done.queue_s
        record.stages["compute"] = done.compute_s
        record.stages["encode"] = done.encode_s
        record.batch_requests, record.batch_rows = done.requests, done.rows
        assert not isinstance(done.body, Answer)
        return done.body if isinstance(done.body, list) else [done.body]


@lru_cache(maxsize=1024)
def _prepared(operation: str, action: str, form: Form) -> tuple[engine.Call, int]:
    """The call of all bodies of a form, and their samples."""
    return engine.prepare(operation, action, form.config, form.specs, cast(Any, form.wants))
