"""The page, the reference and the problems: served by us alone, built or not."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from fastapi import FastAPI

from app.errors import NotFound
from app.problems import pages
from app.routes.site import Site, router
from tests.app.asgi import Answer, ask, running


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What the page's build leaves."""
    files = {
        "index.html": "<p>page</p>",
        "icon.svg": "<svg/>",
        "assets/index-1a2b.js": "1",
        "swagger/swagger-ui.css": "p{}",
        "swagger/swagger-ui-bundle.js": "2",
        "swagger/LICENSE": "3",
    }
    for name, content in files.items():
        path = tmp_path / "dist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "secret").write_text("outside")
    return tmp_path / "dist"


def get(folder: Path, path: str, headers: dict[str, str] | None = None) -> Answer:
    app = FastAPI(docs_url=None)
    app.include_router(router(Site(folder)))
    return asyncio.run(ask(app, "GET", path, headers))


def test_the_page_is_the_built_one_under_a_strict_policy(built: Path) -> None:
    answer = get(built, "/")
    assert answer.body == b"<p>page</p>"
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/assets/index-1a2b.js", "text/javascript"),
        ("/icon.svg", "image/svg+xml"),
        ("/docs/swagger-ui.css", "text/css"),
        ("/docs/swagger-ui-bundle.js", "text/javascript"),
        ("/docs/start.js", "text/javascript"),
        ("/docs/LICENSE", "text/plain"),
    ],
)
def test_files_have_their_types_and_need_not_come_twice(built: Path, path: str, kind: str) -> None:
    answer = get(built, path)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(kind)
    again = get(built, path, {"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "status"),
    [("W/{}", 304), ('"old", W/{}', 304), ("*", 304), ('"old"', 200), ("W/", 200), ("", 200)],
)
def test_a_file_is_known_among_others_and_under_a_weak_name(
    built: Path, asked: str, status: int
) -> None:
    tag = get(built, "/").headers["etag"]
    assert get(built, "/", {"If-None-Match": asked.format(tag)}).status == status


def test_named_after_their_content_they_keep_for_ever(built: Path) -> None:
    assert "immutable" in get(built, "/assets/index-1a2b.js").headers["cache-control"]
    assert get(built, "/").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/assets/../../secret", "/assets/none.js", "/docs/none", "/assets/"]
)
def test_nothing_else_is_served(built: Path, path: str) -> None:
    with pytest.raises(NotFound):
        get(built, path)


def test_the_reference_loads_our_own_files_by_relative_addresses(built: Path) -> None:
    html = get(built, "/docs").body.decode()
    addresses = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert "docs/swagger-ui-bundle.js" in addresses
    for address in addresses:
        assert not address.startswith(("/", "http")), address
        if address.startswith("docs/"):
            assert get(built, f"/{address}").status == 200
    assert not re.search(r"<script>|\son\w+=", html)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_what_is_not_built_says_so(tmp_path: Path, path: str) -> None:
    answer = get(tmp_path / "nowhere", path)
    assert answer.status == 200
    assert b"not been built" in answer.body
    assert b'href="openapi.json"' in answer.body


def test_every_problem_has_a_page() -> None:
    async def scenario() -> None:
        async with running() as app:
            for slug in pages():
                answer = await ask(app, "GET", f"/problems/{slug}")
                assert answer.status == 200
                assert answer.headers["content-type"].startswith("text/html")
                assert "content-security-policy" in answer.headers
            assert (await ask(app, "GET", "/problems/none")).status == 404

    asyncio.run(scenario())
