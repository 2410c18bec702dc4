"""What must not leak, and what answers must carry so that browsers guard them."""

from __future__ import annotations

import asyncio
import hmac
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app import access
from app.access import Access
from app.errors import Forbidden
from app.options import SettingsError, load
from app.settings import Settings
from benchmarks.load.servers import ROOT
from benchmarks.stress.client import Reply, ask
from benchmarks.stress.service import Service, running
from benchmarks.stress.traffic import recorded
from tests.faults.logs import logged

KEYS = ("correct-horse-battery-staple", "another-key-of-somebody")
GUESS = "a-guess-that-is-wrong"

PAGES = ["/", "/docs", "/problems/", "/problems/queue-full"]


@pytest.fixture(scope="module")
def keyed() -> Iterator[Service]:
    with running("--workers", "1", api_keys=",".join(KEYS), log_level="debug") as service:
        yield service


def got(service: Service, path: str, **headers: str) -> Reply:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(ask(service.port, path, headers=fields, method="GET"))


# ---- keys


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(given: bytes, known: bytes) -> bool:
        compared.append(known)
        return hmac.compare_digest(given, known)

    monkeypatch.setattr(access, "compare_digest", compare)
    keys = Access(KEYS)
    for given in (*KEYS, GUESS):
        compared.clear()
        if given == GUESS:
            with pytest.raises(Forbidden):
                keys.check(b"Bearer " + given.encode())
        else:
            assert keys.check(b"Bearer " + given.encode()).startswith("key-")
        # Whichever it is, right or wrong, the same work is done.
        assert compared == [key.encode() for key in KEYS]


def test_keys_are_shown_nowhere(keyed: Service) -> None:
    given = recorded()[0]
    replies = [
        asyncio.run(
            ask(
                keyed.port, given.path, given.body, given.headers | {"Authorization": authorization}
            )
        )
        for authorization in (f"Bearer {KEYS[0]}", f"Bearer {GUESS}", f"Basic {GUESS}", GUESS)
    ]
    assert [reply.status for reply in replies] == [200, 403, 401, 401]
    shown = [got(keyed, path) for path in ("/metrics", "/openapi.json", "/version")]
    shown += [got(keyed, path, Authorization=f"Bearer {KEYS[0]}") for path in ("/v1/limits",)]
    text = logged(keyed) + "".join(f"{reply.headers}{reply.body!r}" for reply in [*replies, *shown])
    assert not [key for key in (*KEYS, GUESS) if key in text]


def test_keys_are_not_in_settings_as_they_are_printed() -> None:
    environ = {"CONVOKE_API_KEYS": ",".join(KEYS)}
    assert not [key for key in KEYS if key in repr(load(environ))]
    with pytest.raises(SettingsError) as refused:
        load({"CONVOKE_API_KEYS": f"{KEYS[0]} with spaces"})
    assert KEYS[0] not in str(refused.value)
    listed = subprocess.run(
        [sys.executable, "-m", "app.cli", "settings"],
        cwd=ROOT, env=environ | {"PATH": ""}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "CONVOKE_API_KEYS" in listed.stdout
    assert not [key for key in KEYS if key in listed.stdout + listed.stderr]


def test_the_log_has_no_tensor_data(keyed: Service) -> None:
    marker = 123456.78125
    body = json.dumps({"config": {"kernel": 1}, "x": [[[marker, marker, "bad"]]]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEYS[0]}"}
    reply = asyncio.run(ask(keyed.port, "/v1/max_pool/forward", body, headers))
    assert reply.status == 400
    assert str(marker) not in logged(keyed)
    assert str(marker) not in reply.body.decode()


def test_a_log_line_cannot_be_forged(keyed: Service) -> None:
    forged = '/v1/conv%0A{"level":"error","message":"forged"}/forward'
    assert got(keyed, forged, X_Request_Id="forged-too").status in (400, 401, 404, 405)
    lines = [json.loads(line) for line in logged(keyed).splitlines()]
    assert [line for line in lines if line.get("request_id") == "forged-too"]
    assert not [line for line in lines if line["message"] == "forged"]


# ---- what answers carry


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_guarded(keyed: Service, path: str) -> None:
    reply = got(keyed, path)
    assert reply.status == 200
    headers = reply.headers
    policy = dict(
        directive.strip().partition(" ")[::2]
        for directive in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'self'"
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert "'unsafe-inline'" not in policy.get("script-src", policy["default-src"])
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert not re.search(rb"""(src|href)=["'](https?:)?//""", reply.body), "another origin"


@pytest.mark.parametrize("path", ["/v1/limits", "/metrics", "/nothing", "/v1/conv/forward"])
def test_nothing_is_sniffed(keyed: Service, path: str) -> None:
    assert got(keyed, path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", [*PAGES, "/nothing", "/v1/conv/forward", "/metrics", "/livez"])
def test_no_answer_names_what_it_was_made_with(keyed: Service, path: str) -> None:
    reply = got(keyed, path)
    assert not {"server", "x-powered-by", "via"} & reply.headers.keys()
    if reply.status >= 400:
        text = f"{reply.headers}{reply.body!r}".lower()
        made_with = ["uvicorn", "starlette", "fastapi", "numpy", "python", "convoke/"]
        made_with += [importlib.metadata.version(name) for name in ("uvicorn", "starlette")]
        assert not [word for word in made_with if word in text]


def test_a_stranger_origin_is_told_nothing(keyed: Service) -> None:
    reply = got(keyed, "/v1/limits", Origin="https://evil.example")
    assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_what_can_be_reached_by_itself_is_this_machine() -> None:
    assert Settings().host == "127.0.0.1"
