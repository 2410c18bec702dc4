"""Content-Type, Accept and Content-Encoding → an exchange."""

from __future__ import annotations

from contextlib import suppress
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import NotAcceptable, UnsupportedCoding, UnsupportedMediaType
from app.wire import MEDIA_TYPES, Exchange, negotiate

MSGPACK = "application/vnd.msgpack"
JSON = "application/json"


def answer(accept: str | None, content_type: str = MSGPACK) -> tuple[str, str]:
    exchange = negotiate(content_type, accept)
    assert MEDIA_TYPES[exchange.media_type] == exchange.response
    return exchange.media_type, exchange.tensors


@pytest.mark.parametrize(
    ("content_type", "codec", "media_type"),
    [
        ("application/vnd.msgpack", "msgpack", "application/vnd.msgpack"),
        ("application/msgpack", "msgpack", "application/msgpack"),
        ("application/x-msgpack", "msgpack", "application/x-msgpack"),
        ("application/json", "json", "application/json"),
        ("Application/JSON", "json", "application/json"),
        ("application/json;charset=utf-8", "json", "application/json"),
        ('application/json ; Charset="UTF-8"', "json", "application/json"),
        ("application/json;charset=utf8", "json", "application/json"),
        ("application/json;charset=US-ASCII", "json", "application/json"),
        ("application/json;", "json", "application/json"),
        ("  application/json  ", "json", "application/json"),
        ("application/json; version=1", "json", "application/json"),
        ("application/msgpack; charset=binary", "msgpack", "application/msgpack"),
    ],
)
def test_the_body_is_answered_in_its_own_type(
    content_type: str, codec: str, media_type: str
) -> None:
    exchange = negotiate(content_type, None)
    assert (exchange.request, exchange.response, exchange.media_type) == (codec, codec, media_type)
    assert exchange.tensors == ("plain" if codec == "msgpack" else "list")


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "json",
        "text/json",
        "text/plain",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "application/vnd.msgpack2",
        "application/problem+json",
        "application/json, text/plain",
        "application/json text",
        "application/json; charset=utf-16",
        "application/json; =",
        "application/*",
        "*/*",
        "application/json\0",
        '"application/json"',
        "multipart/form-data; boundary=x",
    ],
)
def test_any_other_body_is_refused(content_type: str | None) -> None:
    with pytest.raises(UnsupportedMediaType) as caught:
        negotiate(content_type, "*/*")
    assert caught.value.issues[0].loc == ("header", "Content-Type")


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "zstd", "br", "identity, gzip", "deflate", "x"])
def test_a_coded_body_is_refused(coding: str) -> None:
    with pytest.raises(UnsupportedCoding):
        negotiate(JSON, None, coding)


@pytest.mark.parametrize("coding", [None, "", " ", "identity", "Identity", "identity, identity"])
def test_an_uncoded_body_is_not(coding: str | None) -> None:
    assert negotiate(JSON, None, coding) == Exchange("json", "json", JSON, "list")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        # No wish, or every wish: the request's own.
        (None, (MSGPACK, "plain")),
        ("", (MSGPACK, "plain")),
        ("  ", (MSGPACK, "plain")),
        ("*/*", (MSGPACK, "plain")),
        ("application/*", (MSGPACK, "plain")),
        # By name.
        (JSON, (JSON, "list")),
        ("APPLICATION/JSON", (JSON, "list")),
        ("application/msgpack", ("application/msgpack", "plain")),
        ("application/x-msgpack", ("application/x-msgpack", "plain")),
        # The closer name wins among equals, then our own.
        ("application/json, text/plain, */*", (JSON, "list")),
        ("application/json, application/vnd.msgpack", (MSGPACK, "plain")),
        ("application/json, application/*;q=0.9", (JSON, "list")),
        # Weights.
        ("application/json;q=0.5, application/vnd.msgpack;q=0.4", (JSON, "list")),
        ("application/json;q=0.4, application/vnd.msgpack;q=0.5", (MSGPACK, "plain")),
        ("application/json; Q=0.001", (JSON, "list")),
        ("application/vnd.msgpack;q=0, */*", ("application/json", "list")),
        ("*/*;q=0.1, application/vnd.msgpack;q=0", (JSON, "list")),
        ("application/json;q=1.000", (JSON, "list")),
        # How tensors are written.
        ("application/vnd.msgpack;tensors=msgpack-numpy", (MSGPACK, "msgpack-numpy")),
        ('application/vnd.msgpack ; tensors="msgpack-numpy"', (MSGPACK, "msgpack-numpy")),
        ("application/vnd.msgpack; Tensors=msgpack-numpy; q=0.3", (MSGPACK, "msgpack-numpy")),
        ("application/vnd.msgpack; q=0.3; tensors=msgpack-numpy", (MSGPACK, "msgpack-numpy")),
        ("application/x-msgpack;tensors=msgpack-numpy", ("application/x-msgpack", "msgpack-numpy")),
        ("application/json;tensors=base64", (JSON, "base64")),
        ("application/json;tensors=base64, application/json;q=0.9", (JSON, "base64")),
        ("application/json, application/json;tensors=base64;q=0.9", (JSON, "list")),
        ("*/*;tensors=base64", (JSON, "base64")),
        ("*/*;tensors=msgpack-numpy", (MSGPACK, "msgpack-numpy")),
        ("application/json;tensors=base64;q=0, application/json", (JSON, "list")),
        ("application/json;tensors=list", (JSON, "list")),
        # What cannot be met is passed over.
        ("application/json;tensors=msgpack-numpy, */*;q=0.1", (MSGPACK, "plain")),
        ("text/html, application/xhtml+xml, application/json;q=0.2", (JSON, "list")),
        # Parameters that mean nothing to us, grammar at its edges.
        ("application/json;charset=utf-8", (JSON, "list")),
        ("application/json;indent=2;", (JSON, "list")),
        (",, application/json ,", (JSON, "list")),
        ("application/json;q=abc, */*", (MSGPACK, "plain")),
        ("application/json;q=1.5, */*", (MSGPACK, "plain")),
        ("application/json;q=-1, */*", (MSGPACK, "plain")),
        ("garbage, application/json", (JSON, "list")),
        # As Java's HttpURLConnection writes it by itself, up to Java 8.
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", (MSGPACK, "plain")),
        ("*; q=.2", (MSGPACK, "plain")),
        (" * ,application/json;q=.5", (MSGPACK, "plain")),
        ("application/json;q=.5, application/vnd.msgpack;q=.25", (JSON, "list")),
        ("application/json;q=.5, *;q=0", (JSON, "list")),
        ('text/x;a="1, application/json", */*', (MSGPACK, "plain")),
        ('text/x;a="\\", application/json", */*', (MSGPACK, "plain")),
    ],
)
def test_accept(accept: str | None, expected: tuple[str, str]) -> None:
    assert answer(accept) == expected


def test_a_wildcard_keeps_the_name_that_the_request_used() -> None:
    assert answer("application/*", "application/x-msgpack") == ("application/x-msgpack", "plain")
    assert answer("*/*", JSON) == (JSON, "list")
    assert answer(f"{MSGPACK}, {JSON}", JSON) == (JSON, "list")


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "text/*",
        "application/json;q=0",
        "*/*;q=0",
        "*/json",
        "application/json;tensors=msgpack-numpy",
        "application/vnd.msgpack;tensors=base64",
        "application/json;tensors=pickle",
        "application/json;tensors=",
        "application/jso",
        "*;q=0",
        "*;q=.0",
        "*;q=.",
        "**",
        "* *",
        "application*",
        "application/json+x",
        "json",
        ";;;",
        ",",
        "application/json;q=x",
        'text/x;a="application/json',
    ],
)
def test_an_accept_that_cannot_be_met(accept: str) -> None:
    with pytest.raises(NotAcceptable) as caught:
        negotiate(MSGPACK, accept)
    issue = caught.value.issues[0]
    assert issue.loc == ("header", "Accept")
    assert issue.expected is not None
    assert "application/json; tensors=base64" in issue.expected


@pytest.mark.parametrize(
    "accept",
    ['"' + '\\"' * 30_000, "a/b;" * 15_000, "*/*," * 16_000, 'a="' * 20_000, " " * 60_000 + "x"],
    ids=["quotes", "parameters", "ranges", "open", "spaces"],
)
def test_a_huge_header_is_read_in_time_linear_in_it(accept: str) -> None:
    started = process_time()
    with suppress(NotAcceptable):
        negotiate(MSGPACK, accept)
    assert process_time() - started < 1


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_headers_end_in_an_exchange_or_a_named_error(content_type: str, accept: str) -> None:
    with suppress(UnsupportedMediaType, NotAcceptable):
        assert negotiate(content_type, accept).media_type in MEDIA_TYPES
    with suppress(NotAcceptable):
        assert negotiate(JSON, accept).request == "json"
