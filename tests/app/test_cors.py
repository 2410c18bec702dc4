"""Whose pages may read an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.cors import PREFLIGHT, Origins

ROOT = Path(__file__).resolve().parent.parent.parent


def test_without_origins_nothing_is_said() -> None:
    origins = Origins(())
    assert origins.headers({b"origin": b"https://a.example"}) == []
    asked = {b"origin": b"https://a.example", b"access-control-request-method": b"POST"}
    assert not origins.is_preflight(asked)


def test_a_configured_origin_may_read_the_answers() -> None:
    origins = Origins(("https://a.example", "https://b.example"))
    headers = dict(origins.headers({b"origin": b"https://b.example"}))
    assert headers[b"access-control-allow-origin"] == b"https://b.example"
    exposed = set(headers[b"access-control-expose-headers"].split(b", "))
    assert exposed == {b"X-Request-Id", b"Server-Timing", b"Retry-After"}
    assert headers[b"vary"] == b"Origin"


@pytest.mark.parametrize("asked", [{}, {b"origin": b"https://c.example"}])
def test_others_may_not_and_a_cache_is_told(asked: dict[bytes, bytes]) -> None:
    assert Origins(("https://a.example",)).headers(asked) == [(b"vary", b"Origin")]


def test_all_may_where_all_are_configured() -> None:
    headers = dict(Origins(("*",)).headers({b"origin": b"https://c.example"}))
    assert headers[b"access-control-allow-origin"] == b"*"
    assert b"vary" not in headers


def test_pages_may_send_the_headers_that_are_documented() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    table = text.partition("| request | |\n")[2].partition("\n\n")[0]
    documented = set(re.findall(r"^\| `([\w-]+)", table, re.MULTILINE))
    allowed = dict(PREFLIGHT)[b"access-control-allow-headers"].decode().split(", ")
    assert set(allowed) == {"Accept", "Content-Type"} | documented
