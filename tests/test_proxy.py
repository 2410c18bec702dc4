"""The example of a proxy agrees with the settings, and serves where nginx is installed."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep

import pytest

from app import shares
from app.settings import Settings
from tests.serving import ROOT, START_TIMEOUT_S, serving

EXAMPLE = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
SMALL = b'{"x": [[[1, 2, 3]]], "weight": [[[1, -1]]]}'


def _value(directive: str) -> str:
    (found,) = re.findall(rf"^\s*{directive} (.+);$", EXAMPLE, re.MULTILINE)
    return str(found)


def _seconds(directive: str) -> int:
    return int(_value(directive).removesuffix("s"))


def test_the_proxy_lets_bodies_through_that_the_service_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shares, "to_share", lambda: 1 << 40)
    assert int(_value("client_max_body_size").removesuffix("m")) << 20 == Settings().max_body_bytes


def test_the_service_closes_idle_connections_later_than_the_proxy() -> None:
    assert _seconds("keepalive_timeout") < Settings().keep_alive_s


def test_the_proxy_waits_longer_than_any_deadline() -> None:
    assert _seconds("proxy_read_timeout") * 1000 > Settings().max_deadline_ms


def test_the_proxy_reaches_the_service_where_it_listens_by_default() -> None:
    settings = Settings()
    assert _value("server") == f"{settings.host}:{settings.port}"


@contextmanager
def _nginx(folder: Path, service: str) -> Iterator[HTTPConnection]:
    """The example as it stands, but for addresses and TLS, and a connection to it."""
    address = str(folder / "socket")
    example = EXAMPLE.replace("listen 443 ssl http2;", f"listen unix:{address};")
    example = re.sub(r"^ *ssl_certificate.*$", "", example, flags=re.MULTILINE)
    example = example.replace("server 127.0.0.1:8000;", f"server {service};")
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{example}}}\n"
    )
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield _connected(address)
        finally:
            process.terminate()


def _connected(address: str) -> HTTPConnection:
    until = monotonic() + START_TIMEOUT_S
    while True:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(30)
        try:
            found.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            found.close()
            assert monotonic() < until
            sleep(0.05)
        else:
            connection = HTTPConnection("convoke.example")
            connection.sock = found
            return connection


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_nginx_as_the_example_has_it(tmp_path: Path) -> None:
    with (
        serving(log=tmp_path / "log") as service,
        _nginx(tmp_path, service.url.removeprefix("http://")) as connection,
    ):

        def ask(body: bytes, **headers: str) -> tuple[int, str, str]:
            given = {"Content-Type": "application/json"} | headers
            connection.request("POST", "/v1/conv/forward", body, given)
            answer = connection.getresponse()
            answer.read()
            media, name = answer.getheader("Content-Type"), answer.getheader("X-Request-Id")
            return answer.status, media or "", name or ""

        assert ask(SMALL, **{"X-Request-Id": "mine"}) == (200, "application/json", "mine")
        assert re.fullmatch("[0-9a-f]{32}", ask(SMALL)[2])
        # More than nginx takes by itself, and refused by the service.
        large = b'{"x": [' + b" " * (2 << 20) + b"]}"
        status, media, _ = ask(large)
        assert (status, media) == (422, "application/problem+json")
        connection.close()
