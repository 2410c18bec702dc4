"""Where a request ends, whatever else its head wishes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from app.errors import MalformedRequest
from app.framing import check_framing, check_host, mend, without_upgrade

CODINGS = [
    ((), True),
    ((b"chunked",), True),
    ((b" Chunked ",), True),
    ((b"chunked", b"chunked"), False),
    ((b"gzip", b"chunked"), False),
    ((b"gzip, chunked",), False),
    ((b"identity",), False),
    ((b"xchunked",), False),
    ((b"",), False),
]


@pytest.mark.parametrize(("codings", "framed"), CODINGS)
def test_only_chunks_are_read(codings: tuple[bytes, ...], framed: bool) -> None:
    headers = [(b"host", b"x"), *((b"transfer-encoding", coding) for coding in codings)]
    with nullcontext() if framed else pytest.raises(MalformedRequest):
        check_framing(headers)


@dataclass
class Owner:
    """A connection, as far as `mend` knows it."""

    url: bytes = b"/"
    version: str = "1.1"
    expect_100_continue: bool = False

    @property
    def parser(self) -> Any:
        return SimpleNamespace(get_http_version=lambda: self.version)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (b"http://host", b"http://host/"),
        (b"HTTP://host:80?a=b://c", b"HTTP://host:80/?a=b://c"),
        (b"http://[::1]?", b"http://[::1]/?"),
        (b"http://host/", b"http://host/"),
        (b"http://host/a", b"http://host/a"),
        (b"/http://host", b"/http://host"),
        (b"/?http://host", b"/?http://host"),
        (b"*", b"*"),
        (b"", b""),
    ],
)
def test_an_address_without_a_path_is_that_of_the_root(said: bytes, meant: bytes) -> None:
    owner = Owner(said)
    mend(owner)  # type: ignore[arg-type]
    assert owner.url == meant


@pytest.mark.parametrize(("version", "waits"), [("1.1", True), ("1.0", False)])
def test_nobody_waits_for_a_word_in_http_1_0(version: str, waits: bool) -> None:
    owner = Owner(version=version, expect_100_continue=True)
    mend(owner)  # type: ignore[arg-type]
    assert owner.expect_100_continue is waits


HOSTS = [
    ((b"convoke.example",), True),
    ((b"convoke.example:8000",), True),
    ((b"127.0.0.1:8000",), True),
    ((b"[::1]:8000",), True),
    ((b"[fe80::1%25eth0]",), True),
    ((b"caf%C3%A9",), True),
    ((b"",), True),
    ((), False),
    ((b"x", b"x"), False),
    ((b"x", b"y"), False),
    ((b"x, y",), False),
    ((b"x/y",), False),
    ((b"user@x",), False),
    ((b"x:80:80",), False),
    ((b"x:http",), False),
    ((b"[::1",), False),
    ((b"%zz",), False),
    (("é".encode(),), False),
]


@pytest.mark.parametrize(("hosts", "right"), HOSTS)
def test_there_is_one_host(hosts: tuple[bytes, ...], right: bool) -> None:
    headers = [(b"accept", b"*/*"), *((b"host", host) for host in hosts)]
    with nullcontext() if right else pytest.raises(MalformedRequest):
        check_host("1.1", headers)
    with nullcontext() if right or not hosts else pytest.raises(MalformedRequest):
        check_host("1.0", headers)


def test_a_head_without_its_wish_is_otherwise_as_it_was() -> None:
    headers = [
        (b"host", b"x"),
        (b"connection", b"Upgrade, close,HTTP2-Settings"),
        (b"upgrade", b"h2c"),
        (b"http2-settings", b"AAMAAABk"),
        (b"x-upgrade", b"upgrade"),
        (b"content-length", b"3"),
    ]
    assert without_upgrade(b"POST", b"/v1?a=b", "1.0", headers) == (
        b"POST /v1?a=b HTTP/1.0\r\nhost: x\r\nconnection: close\r\n"
        b"x-upgrade: upgrade\r\ncontent-length: 3\r\n\r\n"
    )
