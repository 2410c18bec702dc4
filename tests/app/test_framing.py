"""Where a request ends, whatever else its head wishes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from httptools import HttpParserCallbackError, HttpParserError
from starlette.types import Receive, Scope, Send

from app.errors import MalformedRequest
from app.framing import cause_of, check_framing, check_host, check_version, mend, without_upgrade
from tests.app.connecting import answers

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


def test_a_coding_that_is_not_read_is_named() -> None:
    with pytest.raises(MalformedRequest) as refused:
        check_framing([(b"transfer-encoding", b"gzip"), (b"transfer-encoding", b"chunked")])
    (issue,) = refused.value.issues
    assert issue.loc == ("header", "Transfer-Encoding")
    assert (issue.expected, issue.got) == ("chunked", "gzip, chunked")


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
        (b"/v1/conv%2Fforward?a=%2F", b"/v1/conv%252Fforward?a=%2F"),
        (b"/v1%2fconv/%66orward", b"/v1%252fconv/%66orward"),
        (b"http://host/v1%2Fconv", b"http://host/v1%252Fconv"),
    ],
)
def test_an_address_is_taken_as_it_is_meant(said: bytes, meant: bytes) -> None:
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


@pytest.mark.parametrize(
    ("hosts", "got"),
    [((), None), ((b"a", b"b"), ["a", "b"]), ((b"user@x",), "user@x")],
    ids=["none", "two", "no host"],
)
def test_a_host_that_cannot_be_is_named(hosts: tuple[bytes, ...], got: object) -> None:
    with pytest.raises(MalformedRequest) as refused:
        check_host("1.1", [(b"host", host) for host in hosts])
    (issue,) = refused.value.issues
    assert issue.loc == ("header", "Host")
    assert issue.expected == "one host, with or without a port"
    assert issue.got == got


@pytest.mark.parametrize("version", ["2.0", "0.9"])
def test_other_versions_are_not_spoken(version: str) -> None:
    with pytest.raises(MalformedRequest, match="spoken here"):
        check_version(version)


def test_an_escaped_slash_separates_nothing_however_often_it_comes() -> None:
    head = b"POST /v1/conv%2Fforward HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
    asked, _ = heard(*[head] * 4)
    assert asked == [("POST", "/v1/conv%2Fforward", b"x")] * 4


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


def heard(*pieces: bytes) -> tuple[list[tuple[str, str, bytes]], bytes]:
    """What the application is asked: method, path and body of each; and what the client reads."""
    asked: list[tuple[str, str, bytes]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        asked.append((scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 405, "headers": []})
        await send({"type": "http.response.body"})

    read = answers(app, *pieces)
    return asked, read


GET = b"GET /good HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("method", [b"FOO", b"get", b"GETS", b"M-", b"!#$%&'*+-.^_`|~0"])
@pytest.mark.parametrize("before", [b"", b"\r\n", b"\n"])
def test_a_method_that_the_parser_does_not_know_is_the_applications_business(
    method: bytes, before: bytes
) -> None:
    asked, read = heard(
        before + method + b" /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{", b"}" + GET
    )
    assert asked == [(method.decode(), "/a", b"{}")]
    assert read.count(b"HTTP/1.1 405") == 1
    assert b"connection: close" in read, "the parser would take the next one's method for this"


def test_it_may_wish_for_another_protocol() -> None:
    wish = b"Connection: upgrade\r\nUpgrade: websocket\r\nX-Request-Id: 1\r\n\r\n"
    asked, read = heard(b"FOO /a HTTP/1.1\r\nHost: x\r\n" + wish)
    assert asked == [("FOO", "/a", b"")]
    assert read.count(b"HTTP/1.1 405") == 1


def test_it_may_come_after_another() -> None:
    asked, _ = heard(GET, b"FOO /a HTTP/1.1\r\nHost: x\r\n\r\n")
    assert asked == [("GET", "/good", b""), ("FOO", "/a", b"")]


@pytest.mark.parametrize(
    "data",
    [
        b"FOO /a HTTP/1.1\r\n\r\n",
        b"FOO a b c\r\n\r\n",
        b"FOO\r\n\r\n",
        b"FO@ /a HTTP/1.1\r\nHost: x\r\n\r\n",
        b"F" * 65 + b" /a HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01",
    ],
)
def test_what_is_no_request_is_refused_whatever_its_method(data: bytes) -> None:
    asked, read = heard(data)
    assert not asked
    assert read.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("data", [[b"PO", b"XX /a HTTP/1.1\r\nHost: x\r\n\r\n"], [b"GE", b"S /"]])
def test_the_rest_of_a_method_is_none(data: list[bytes]) -> None:
    asked, read = heard(*data)
    assert not asked
    assert read.startswith(b"HTTP/1.1 400 ")


def test_a_method_is_not_taken_from_a_request_before_it() -> None:
    """Sent ahead, what comes second cannot be found in the bytes again, and is no request."""
    asked, read = heard(GET + b"FOO /a HTTP/1.1\r\nHost: x\r\n\r\n")
    assert asked == [("GET", "/good", b"")]
    assert [answer[:3] for answer in read.split(b"HTTP/1.1 ")[1:]] == [b"405", b"400"]


BROKEN = {
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 7secret\r\n\r\n": "Invalid character in Content-Length",
    b"GET / HTTP/1.1\r\nHost: x\r\nsecret name: 1\r\n\r\n": "Invalid header token",
    b"GET / HTTP/7.7\r\nHost: secret\r\n\r\n": "Invalid HTTP version",
    b"\x16\x03\x01secret": "Invalid method encountered",
}


@pytest.mark.parametrize(("request_", "reason"), BROKEN.items())
def test_what_is_no_http_is_told_why_and_not_what_it_was(request_: bytes, reason: str) -> None:
    _, read = heard(request_)
    assert f'"detail":"The request is not valid HTTP: {reason}."'.encode() in read
    assert b"secret" not in read


@pytest.mark.parametrize("digits", ["18446744073709551616", "9" * 1000])
def test_a_length_that_no_number_holds_is_too_large(digits: str) -> None:
    asked, read = heard(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {digits}\r\n\r\n".encode())
    assert not asked
    assert read.startswith(b"HTTP/1.1 413 ")
    assert b"the body is longer than any limit" in read


def test_who_speaks_http_2_is_told_what_is_spoken_here() -> None:
    asked, read = heard(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert not asked
    assert read.startswith(b"HTTP/1.1 400 ")
    assert b"HTTP/2 begins so, and is not spoken here" in read


def test_what_a_callback_says_of_the_bytes_is_not_told() -> None:
    for error in (HttpParserCallbackError("b'secret'"), HttpParserError()):
        assert str(cause_of(error)) == MalformedRequest.summary
