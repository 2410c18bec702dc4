"""Bytes on a bare connection that are no request, or one that two readers may take for two things."""

from __future__ import annotations

from tests.faults.hostile import GOOD, MSGPACK, POOL


def _head(*lines: str, method: str = "POST", path: str = POOL) -> bytes:
    fixed = (
        f"{method} {path} HTTP/1.1",
        "Host: x",
        "Connection: close",
        f"Content-Type: {MSGPACK}",
    )
    return "".join(line + "\r\n" for line in (*fixed, *lines, "")).encode("latin-1")


def _chunk(data: bytes, size: bytes | None = None) -> bytes:
    return (b"%x" % len(data) if size is None else size) + b"\r\n" + data + b"\r\n"


SPOKEN: list[tuple[str, int, bytes]] = [
    ("nonsense", 400, b"nonsense\r\n\r\n"),
    ("TLS hello", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)),
    ("HTTP/2 preface", 400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("HTTP/9", 400, b"GET / HTTP/9.9\r\n\r\n"),
    ("HTTP/2.0", 400, b"GET /livez HTTP/2.0\r\nHost: x\r\n\r\n"),
    ("HTTP/0.9", 400, b"GET /livez HTTP/0.9\r\nHost: x\r\n\r\n"),
    ("no version", 400, b"GET /livez\r\n\r\n"),
    ("an escaped slash", 404, _head(method="GET", path="/v1%2Flimits")),
    ("no host", 400, b"GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n"),
    ("no host in HTTP/1.0", 200, b"GET /livez HTTP/1.0\r\n\r\n"),
    ("two hosts", 400, _head("Host: y", method="GET", path="/livez")),
    ("the same host twice", 400, _head("Host: x", method="GET", path="/livez")),
    ("two hosts in HTTP/1.0", 400, b"GET /livez HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n"),
    ("a host that is none", 400, b"GET /livez HTTP/1.1\r\nHost: x y\r\nConnection: close\r\n\r\n"),
    ("no host behind an upgrade", 400,
     b"GET /livez HTTP/1.1\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n"),
    ("two lengths", 400, _head("Content-Length: 1", "Content-Length: 2") + b"x"),
    ("length and chunks", 400, _head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n"),
    ("negative length", 400, _head("Content-Length: -1")),
    ("length of hex", 400, _head("Content-Length: 0x10")),
    ("length with a sign", 400, _head("Content-Length: +1") + b"x"),
    ("length of 30 digits", 413, _head("Content-Length: " + "9" * 30)),
    ("length beyond the limit", 413, _head("Content-Length: 99999999999")),
    ("chunk size of nonsense", 400, _head("Transfer-Encoding: chunked") + _chunk(b"x", b"zz")),
    ("chunk size past 64 bits", 413, _head("Transfer-Encoding: chunked") + _chunk(b"x", b"f" * 17)),
    ("negative chunk", 400, _head("Transfer-Encoding: chunked") + _chunk(b"x", b"-1")),
    ("chunk extension of 100 kB", 431,
     _head("Transfer-Encoding: chunked") + b"1;" + b"a" * 3_000_000 + b"\r\nx\r\n0\r\n\r\n"),
    ("a transfer coding nobody knows", 400, _head("Transfer-Encoding: gzip") + b"x"),
    ("gzip in chunks", 400, _head("Transfer-Encoding: gzip, chunked") + _chunk(GOOD) + _chunk(b"")),
    ("gzip and chunked", 400,
     _head("Transfer-Encoding: gzip", "Transfer-Encoding: chunked") + _chunk(GOOD) + _chunk(b"")),
    ("not quite chunked", 400, _head("Transfer-Encoding: xchunked") + _chunk(GOOD) + _chunk(b"")),
    ("chunked in capitals", 200, _head("Transfer-Encoding: CHUNKED") + _chunk(GOOD) + _chunk(b"")),
    ("chunked twice", 400, _head("Transfer-Encoding: chunked, chunked") + b"0\r\n\r\n"),
    ("chunked body of nothing", 400, _head("Transfer-Encoding: chunked") + b"0\r\n\r\n"),
    ("NUL in a header", 400, _head("X-A: a\0b", "Content-Length: 0")),
    ("folded header", 400, _head("X-A: a", " b", "Content-Length: 0")),
    ("space before the colon", 400, _head("Content-Length : 0")),
    ("header without a name", 400, _head(": a", "Content-Length: 0")),
    ("headers of 100 kB", 431, _head("X-A: " + "a" * 100_000)),
    ("10000 headers", 431, _head(*(f"X-{i}: 1234567890" for i in range(10_000)))),
    ("a method of 100 kB", 400, b"A" * 100_000),
    ("an address of 100 kB", 431, b"GET /" + b"a" * 100_000),
    ("CONNECT", 400, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    ("absolute address", 404, _head(method="GET", path="http://evil.example/x")),
    ("absolute address without a path", 200, _head(method="GET", path="http://evil.example")),
    ("absolute address of a query alone", 200, _head(method="HEAD", path="HTTP://evil.example:1?a=/b")),
    ("chunks with extensions and a trailer", 200, _head("Transfer-Encoding: chunked")
     + b'%x;a=b;c="d"\r\n' % len(GOOD) + GOOD + b"\r\n0;e\r\nX-A: b\r\n\r\n"),
    ("a length in a trailer", 400, _head("Transfer-Encoding: chunked") + _chunk(GOOD)
     + b"0\r\nContent-Length: 3\r\n\r\n"),
    ("lines that end in LF", 400, _head("Content-Length: 0").replace(b"\r\n", b"\n")),
    ("chunk that ends in LF", 400, _head("Transfer-Encoding: chunked") + b"1\nx\n0\n\n"),
    ("the same length twice", 400, _head("Content-Length: 1", "Content-Length: 1") + b"x"),
    ("a list of lengths", 400, _head("Content-Length: 1, 1") + b"x"),
    ("length of nothing", 400, _head("Content-Length:")),
    ("length with zeros before it", 200, _head(f"Content-Length: 000{len(GOOD)}") + GOOD),
    ("query that is not ASCII", 400, _head(method="GET", path="/livez?\xff")),
    ("query of a broken escape", 200, _head(method="GET", path="/livez?a=%ff&b=%z")),
    ("asterisk", 204, b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    ("asterisk after something", 404, b"OPTIONS /* HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    ("upgrade to websocket", 405, _head("Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                        "Sec-WebSocket-Key: eA==", method="GET",
                                        path="/v1/conv/forward").replace(b": close", b": Upgrade, close")),
    ("CONNECT to an operation", 405, _head(method="CONNECT") + _head(method="GET", path="/livez")),
    ("bytes after the body", 200, _head(f"Content-Length: {len(GOOD)}") + GOOD + b"\0" * 100),
    ("body cut by the client", 0, _head("Content-Length: 100") + b"x"),
]  # fmt: skip
"""Name, status (0: none need come, since the client hangs up), and what is said."""
