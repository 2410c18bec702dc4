"""Where a request ends, whatever else its head wishes."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from app.errors import MalformedRequest
from app.framing import check_framing, without_upgrade

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
