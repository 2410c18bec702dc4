"""The application, put together: settings in, an ASGI application out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

import engine
from app import __version__
from app.access import Access
from app.admission import QueueLimits
from app.awake import Awake
from app.batcher import BatchLimits
from app.cors import Origins
from app.cost import CostLimits
from app.dispatcher import Dispatcher
from app.edge import Edge
from app.errors import MethodNotAllowed, NotFound
from app.gate import Gate
from app.lifecycle import Lifecycle
from app.limits import limits
from app.quotas import QuotaLimits, Quotas
from app.routes import catalogue, health, problems, site
from app.routes.body import Intake
from app.routes.compute import Compute
from app.routes.keys import ACTIONS, operation_names
from app.routes.near import near
from app.routes.openapi import describe
from app.routes.reading import decode_limits
from app.scribe.desk import DeskLimits
from app.scribe.desks import Desks
from app.settings import Settings
from app.staffing import DispatchLimits
from app.telemetry import Telemetry
from app.workers.cpus import available_cpus
from engine.wakefulness import Wakefulness, worth_it

SMALL_WORK = 5e7
"""Work, in floating-point operations, that takes a worker about half a millisecond; it need not wait for
what takes longer."""

# The catalogue and the limits are no operations, whatever follows them.
_COMPUTE = re.compile("/v1/(?!operations/|limits/)([^/]+)/([^/]+)")


class Application(FastAPI):
    """FastAPI, past whose layers requests to compute go: they would cost more than the batching."""

    compute: Compute
    to_compute: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] == "http":
            found = _COMPUTE.fullmatch(scope["path"].removeprefix(scope["root_path"]))
            if found is not None:
                scope["path_params"] = {"operation": found[1], "action": found[2]}
                await self.to_compute(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def create_app(settings: Settings, log_lines_dropped: Callable[[], int] = lambda: 0) -> FastAPI:
    """Make the application of one server.

    Args:
        settings: of this server.
        log_lines_dropped: asked when the metrics are.

    Returns:
        The application; its workers live from the start to the end of its lifespan.
    """
    telemetry = Telemetry(log_lines_dropped)
    lifecycle = Lifecycle()
    cost = cost_limits(settings)
    dispatcher = Dispatcher(dispatch_limits(settings, cost), telemetry, awake=awake(settings))
    intake = Intake(settings.max_held_bytes, dispatcher.berths)
    # Without workers everything is done in this process.
    desks = Desks(desk_limits(settings), telemetry.worker_restarted) if settings.workers else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await dispatcher.start()
        if desks is not None:
            await desks.start()
        try:
            yield
        finally:
            await dispatcher.drain(0.0 if lifecycle.hurried else settings.drain_timeout_s)
            if desks is not None:
                await desks.close()

    app = Application(
        title="Convoke",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.dispatcher = dispatcher
    app.state.lifecycle = lifecycle
    app.state.telemetry = telemetry
    app.state.intake = intake
    app.state.access = access = Access(settings.api_keys)
    operations = engine.operations()
    description = describe(operations, settings)
    app.state.documents = catalogue.Documents(operations, limits(settings), description)
    app.state.addresses = _addresses(description, operations)
    app.add_middleware(Edge, settings=settings, telemetry=telemetry, lifecycle=lifecycle)
    app.add_exception_handler(HTTPException, _refused_by_the_router)
    app.state.gate = gate = Gate(
        dispatcher, telemetry, lifecycle, desks, Origins(settings.cors_origins)
    )
    quotas = Quotas(quota_limits(settings))
    app.compute = Compute(
        settings, dispatcher, intake, lifecycle, gate, access, cost, desks, quotas
    )
    app.to_compute = Edge(app.compute, settings, telemetry, lifecycle)
    for router in (
        catalogue.router,
        health.router,
        problems.router,
        site.router(site.Site()),
    ):
        app.include_router(router)
    return app


def _addresses(description: Mapping[str, Any], operations: Mapping[str, Any]) -> list[str]:
    """Every address that somebody may look for."""
    computed = [
        f"/v1/{name}/{action}" for name in operation_names(operations) for action in ACTIONS
    ]
    return [*description["paths"], *computed, "/docs", "/openapi.json", "/problems/"]


def awake(settings: Settings) -> Awake | None:
    """What keeps processors awake: this process does, for itself and for its workers."""
    busy = 1 + (settings.workers or available_cpus())
    return Awake(Wakefulness()) if settings.keep_awake and worth_it(busy) else None


def cost_limits(settings: Settings) -> CostLimits:
    """What one request may cost, from its plan."""
    return CostLimits(
        output_bytes=settings.max_output_bytes,
        workspace_bytes=settings.max_workspace_bytes,
        flops=settings.max_flops,
        steps=settings.max_steps,
        tensor_bytes=settings.max_tensor_bytes,
    )


def quota_limits(settings: Settings) -> QuotaLimits:
    """What one caller may ask."""
    return QuotaLimits(
        rate=settings.max_caller_rate,
        burst=settings.max_caller_burst,
        at_once=settings.max_caller_requests,
    )


def desk_limits(settings: Settings) -> DeskLimits:
    """The desks' part of the settings."""
    return DeskLimits(
        decode=decode_limits(settings),
        body_bytes=min(settings.max_json_bytes, settings.max_body_bytes),
        waiting_bytes=settings.max_json_waiting_bytes,
        work_s=settings.max_compute_s,
    )


def dispatch_limits(settings: Settings, cost: CostLimits) -> DispatchLimits:
    """The dispatcher's part of the settings."""
    return DispatchLimits(
        workers=settings.workers,
        cost=cost,
        queue=QueueLimits(settings.max_queue_requests, settings.max_queue_bytes),
        batch=BatchLimits(
            requests=settings.max_batch_requests if settings.batching else 1,
            rows=settings.max_batch_rows,
            nbytes=settings.max_batch_bytes,
            small=SMALL_WORK,
        ),
        max_compute_s=settings.max_compute_s,
        at_once=settings.workers > 0,
        body_bytes=settings.max_body_bytes,
    )


async def _refused_by_the_router(request: Request, error: Exception) -> NoReturn:
    """The router's own refusals, as ours."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        raise MethodNotAllowed(sorted(allow.split(", ")), request.method) from None
    if error.status_code == 404:
        path, root = request.scope["path"], request.scope["root_path"]
        found = near(path.removeprefix(root), request.app.state.addresses)
        raise NotFound(path, [root + one for one in found]) from None
    raise error
