"""Is it alive, is it ready, which version is it, and how is it doing."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from app import __version__
from app.edge import READ
from app.errors import ShuttingDown, WorkersUnavailable
from app.telemetry import EXPOSITION_TYPE

router = APIRouter(include_in_schema=False)

CONTRACT = 1
"""Version of the HTTP contract that is spoken here."""


@router.api_route("/livez", methods=READ)
async def livez() -> Response:
    """The process answers."""
    return JSONResponse({"status": "alive"})


@router.api_route("/readyz", methods=READ)
async def readyz(request: Request) -> Response:
    """Workers are up and new work is taken; else a problem of status 503."""
    state = request.app.state
    if state.lifecycle.draining:
        raise ShuttingDown
    if not state.dispatcher.ready:
        raise WorkersUnavailable("The workers are not ready.", retry_after=1.0)
    return JSONResponse({"status": "ready"})


@router.api_route("/version", methods=READ)
async def version() -> Response:
    """What is running."""
    return JSONResponse({"name": "convoke", "version": __version__, "contract": CONTRACT})


@router.api_route("/metrics", methods=READ)
async def metrics(request: Request) -> Response:
    """The metrics in Prometheus' text format."""
    state = request.app.state
    telemetry = state.telemetry
    # The request that asks is not counted among those being answered.
    telemetry.in_flight.set(state.lifecycle.in_flight - 1)
    telemetry.queue_requests.set(state.dispatcher.queue_depth)
    telemetry.queue_bytes.set(state.dispatcher.queue_bytes)
    telemetry.held_bytes.set(state.intake.held)
    return Response(telemetry.exposition(), headers={"content-type": EXPOSITION_TYPE})
