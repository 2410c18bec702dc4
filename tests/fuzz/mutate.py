"""Bodies made from other bodies: a few bytes changed, cut, doubled, or taken from another one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

CHANGES = (1, 1, 1, 1, 2, 2, 3, 6)
"""How many changes make a mutant. A single one mostly spoils the body already."""

LARGEST = 1 << 14
"""Bodies do not grow beyond this many bytes."""

TOKENS = {
    "msgpack": [
        *(bytes([byte]) for byte in (0x00, 0x7F, 0x80, 0x90, 0xA0, *range(0xC0, 0xE0), 0xFF)),
        b"\xcf" + b"\xff" * 8, b"\xd3\x80" + bytes(7), b"\xcb\x7f\xf8" + bytes(6),
        b"\xdf\xff\xff\xff\xff", b"\xdd\x00\xff\xff\xff", b"\xc6\x00\x01\x00\x00",
        b"\xa5dtype", b"\xa5shape", b"\xa4data", b"\xc4\x02nd", b"\xc4\x04kind", b"\xa1x",
        b"\xa6config", b"\xa7float32", b"\xa3<f4", b"\xa1O", b"\x93\x01\x01\x01",
    ],
    "json": [
        b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"true", b"NaN", b'"NaN"',
        b"-Infinity", b"1e999", b"-0", b"1.", b"0x1", b"9" * 40, b"1" * 5000, b'"x":', b'"config":',
        b'"dtype":"float32"', b'"shape":[1,1,1]', b'"data":"AAAA"', b"[[[1]]]", b"\\ud800", b"\xff",
        b"\xef\xbb\xbf", b"[" * 200, b"]" * 200, b"\0", b"\n",
    ],
}  # fmt: skip
"""What means something in each format, wherever it stands."""


def mutants(seeds: Sequence[bytes], form: str, seed: int) -> Iterator[tuple[bytes, bytes]]:
    """Bodies without end, each after the one that it was; the same ones for the same arguments."""
    draw = random.Random(seed)
    tokens = TOKENS[form]
    changes: list[Callable[[bytearray], None]] = [
        lambda body: _flip(body, draw),
        lambda body: _insert(body, draw.choice(tokens), draw),
        lambda body: _replace(body, draw.choice(tokens), draw),
        lambda body: _delete(body, draw),
        lambda body: _double(body, draw),
        lambda body: _insert(body, _slice(draw.choice(seeds), draw), draw),
    ]
    while True:
        origin = draw.choice(seeds)
        body = bytearray(origin)
        for _ in range(draw.choice(CHANGES)):
            draw.choice(changes)(body)
        yield origin, bytes(body[:LARGEST])


def _at(body: bytearray, draw: random.Random) -> int:
    return draw.randint(0, len(body))


def _slice(body: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(body))
    return body[start : start + draw.randint(1, 64)]


def _flip(body: bytearray, draw: random.Random) -> None:
    if body:
        body[draw.randrange(len(body))] ^= 1 << draw.randrange(8)


def _insert(body: bytearray, token: bytes, draw: random.Random) -> None:
    at = _at(body, draw)
    body[at:at] = token


def _replace(body: bytearray, token: bytes, draw: random.Random) -> None:
    at = _at(body, draw)
    body[at : at + len(token)] = token


def _delete(body: bytearray, draw: random.Random) -> None:
    at = _at(body, draw)
    del body[at : at + draw.randint(1, 16)]


def _double(body: bytearray, draw: random.Random) -> None:
    part = _slice(bytes(body), draw)
    _insert(body, part * draw.randint(1, 8), draw)
