"""What the service can do, what it allows, and how it is all described."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from app.edge import READ, RECORD

router = APIRouter(include_in_schema=False)


class Documents:
    """The documents that do not change while the server runs, written once."""

    def __init__(
        self, operations: dict[str, Any], limits: dict[str, Any], openapi: dict[str, Any]
    ) -> None:
        self.operations = json.dumps(operations).encode()
        self.limits = json.dumps(limits).encode()
        self.openapi = json.dumps(openapi).encode()


def _checked(request: Request) -> Documents:
    """The documents, for a caller who may read them."""
    state = request.app.state
    state.access.check(request.scope[RECORD].headers.get(b"authorization"))
    documents: Documents = state.documents
    return documents


@router.api_route("/v1/operations", methods=READ)
async def operations(request: Request) -> Response:
    """The catalogue: each operation's tensors, config schema, algorithms and examples."""
    return Response(_checked(request).operations, media_type="application/json")


@router.api_route("/v1/limits", methods=READ)
async def limits(request: Request) -> Response:
    """Every limit with its value, unit and meaning."""
    return Response(_checked(request).limits, media_type="application/json")


@router.api_route("/openapi.json", methods=READ)
async def openapi(request: Request) -> Response:
    """The description of the whole HTTP interface, OpenAPI 3.1."""
    return Response(request.app.state.documents.openapi, media_type="application/json")
