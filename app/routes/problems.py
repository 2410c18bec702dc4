"""GET /problems/…: what each problem means and what to do about it."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from app.edge import READ
from app.errors import NotFound
from app.problems import pages
from app.routes.near import near
from app.routes.site import PAGE_HEADERS

router = APIRouter(include_in_schema=False)

_PAGES = pages()


@router.api_route("/problems/", methods=READ)
async def index() -> Response:
    """All problems."""
    return HTMLResponse(_PAGES[""], headers=PAGE_HEADERS)


@router.api_route("/problems/{slug}", methods=READ)
async def page(slug: str) -> Response:
    """One of them; the last part of a problem's `type` names it."""
    if slug not in _PAGES:
        path = f"/problems/{slug}"
        raise NotFound(path, near(path, [f"/problems/{one}" for one in _PAGES]))
    return HTMLResponse(_PAGES[slug], headers=PAGE_HEADERS)
