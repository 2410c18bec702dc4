"""The visualizer and the assets of `/docs`: built files, read once, served from memory.

Every address in the pages is relative, so that they work under any root path; nothing comes from
another origin, and the Content-Security-Policy holds them to that.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from app.edge import READ
from app.errors import NotFound

BUILT = Path(__file__).parent.parent / "web" / "dist"
"""Where the page's build leaves its files."""

_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cache-control": "no-cache",
}
"""Headers of every page of ours."""

# Swagger UI writes style attributes into the elements it makes.
DOCS_HEADERS = PAGE_HEADERS | {
    "content-security-policy": _POLICY + "; style-src 'self' 'unsafe-inline'"
}

_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
{head}
</head>
<body>
{body}
</body>
</html>
"""

_NO_PAGE = _SHELL.format(
    title="Convoke",
    head="",
    body="""<h1>Convoke</h1>
<p>The service runs. Its visualizer has not been built here; <code>make page</code> in a checkout
builds it (Node.js is needed), and a restart shows it.</p>
<p>The interface is described in <a href="docs">the reference</a> and
<a href="openapi.json">openapi.json</a>; <a href="v1/operations">v1/operations</a> lists what can be
computed.</p>""",
)

_NO_DOCS = _SHELL.format(
    title="Convoke: reference",
    head="",
    body="""<h1>Reference</h1>
<p>The viewer has not been built here; <code>make page</code> in a checkout builds it (Node.js is
needed), and a restart shows it.</p>
<p>The whole description is in <a href="openapi.json">openapi.json</a>, which any OpenAPI viewer
shows.</p>""",
)

_DOCS = _SHELL.format(
    title="Convoke: reference",
    head="""<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="docs/swagger-ui.css">""",
    body="""<div id="reference"></div>
<noscript>This viewer needs JavaScript; the description itself is in
<a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>""",
)

# Without the class its letters are dark whatever the ground is, which follows the system's wish.
_START = b"""const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
"""


@dataclass(frozen=True)
class Asset:
    """A built file."""

    body: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, name: str, body: bytes) -> Asset:
        """The asset of that name, whose ending tells its media type."""
        # Licences have names without an ending.
        unknown = "application/octet-stream" if "." in name.rpartition("/")[2] else "text/plain"
        kind = mimetypes.guess_type(name)[0] or unknown
        return cls(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    def response(self, request: Request, headers: dict[str, str]) -> Response:
        """The file, or that it has not changed."""
        headers = headers | {"etag": self.tag}
        if self._is_known(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)

    def _is_known(self, tags: str) -> bool:
        """Whether the client has it (RFC 9110, section 13.1.2): proxies that compress weaken its tag."""
        known = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
        return self.tag in known or known == ["*"]


class Site:
    """The built files by path within the build, as `assets/index-1a2b.js`."""

    def __init__(self, folder: Path = BUILT) -> None:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        self.assets = {
            path.relative_to(folder).as_posix(): Asset.of(path.name, path.read_bytes())
            for path in files
        }
        if "swagger/swagger-ui-bundle.js" in self.assets:
            self.assets["swagger/start.js"] = Asset.of("start.js", _START)

    def get(self, path: str) -> Asset:
        """The asset of that path; raises NotFound."""
        try:
            return self.assets[path]
        except KeyError:
            raise NotFound(path) from None


def router(site: Site) -> APIRouter:
    """Routes for the page, the reference and the files of both."""
    routes = APIRouter(include_in_schema=False)

    @routes.api_route("/", methods=READ)
    async def page(request: Request) -> Response:
        index = site.assets.get("index.html")
        if index is None:
            return HTMLResponse(_NO_PAGE, headers=PAGE_HEADERS)
        return index.response(request, PAGE_HEADERS)

    @routes.api_route("/docs", methods=READ)
    async def reference() -> Response:
        built = "swagger/start.js" in site.assets
        return HTMLResponse(_DOCS if built else _NO_DOCS, headers=DOCS_HEADERS)

    @routes.api_route("/docs/{name}", methods=READ)
    async def reference_asset(request: Request, name: str) -> Response:
        return site.get(f"swagger/{name}").response(request, {"cache-control": "no-cache"})

    @routes.api_route("/assets/{path:path}", methods=READ)
    async def asset(request: Request, path: str) -> Response:
        # The build names these files after their content, so they never change.
        forever = {"cache-control": "public, max-age=31536000, immutable"}
        return site.get(f"assets/{path}").response(request, forever)

    for name in site.assets:
        if "/" not in name and name != "index.html":
            _top_level(routes, site.assets[name], name)
    return routes


def _top_level(routes: APIRouter, asset: Asset, name: str) -> None:
    """Serve a file beside the page, as an icon is."""

    @routes.api_route(f"/{name}", methods=READ)
    async def beside(request: Request) -> Response:
        return asset.response(request, {"cache-control": "no-cache"})
