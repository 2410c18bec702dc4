"""Large binary values, taken out of a msgpack body before it is unpacked.

The unpacker copies every binary value. A body of many MiB is all but one or two of them, so they are
left where they are: the body is unpacked without them, each replaced by an extension value that
names its place, and what the unpacker makes of that is a view. Extension values of a client's own
are refused anyway, so that a body with any is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

Body = bytes | bytearray | memoryview

LIFTED_BYTES: Final = 64 << 10
"""Binary values of fewer bytes are copied sooner than they are lifted."""

CODE: Final = 1
"""Type of the extension values that stand for lifted ones; their data is a position."""

POSITION_BYTES: Final = 2
"""Size of that position."""

MAX_TOKENS: Final = 4096
"""A body of more values than that has no business here; its refusal is left to the unpacker."""

_FIXEXT_2: Final = 0xD5
_NUMBERS: Final = dict(zip(range(0xCA, 0xD4), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True))
_FIXED: Final = {0xC0: 0, 0xC2: 0, 0xC3: 0, **_NUMBERS}
_HEADS: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""Lists and maps: what follows their length is counted as values of its own."""
_TEXTS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BINARIES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}


class Lifted(NamedTuple):
    """A binary value that was taken out.

    Attributes:
        data: its bytes.
        saved: by how many bytes what stands for it is shorter.
    """

    data: memoryview
    saved: int


def lift(body: Body, least: int = LIFTED_BYTES) -> tuple[Body, Sequence[Lifted]]:
    """Take the large binary values out.

    Args:
        least: bytes of a large one.

    Returns:
        The body without them, and they in the order of their positions. The body itself
        and nothing, where it is not well-formed or has extension values.
    """
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    lifted: list[Lifted] = []
    start = at = 0
    for _ in range(MAX_TOKENS):
        if at >= len(view):
            break
        head, length = _extent(view, at)
        if length < 0:
            return body, ()
        if length >= least and view[at] in _BINARIES:
            position = len(lifted).to_bytes(POSITION_BYTES, "big")
            instead = bytes((_FIXEXT_2, CODE)) + position
            pieces += [view[start:at], instead]
            start = at + head + length
            lifted.append(Lifted(view[at + head : start], head + length - len(instead)))
        at += head + length
    if at != len(view) or not lifted:
        return body, ()
    return b"".join([*pieces, view[start:]]), lifted


def _extent(view: memoryview, at: int) -> tuple[int, int]:
    """Size of a value's head and of what belongs to it; the latter is -1 where there is no saying."""
    first = view[at]
    if first < 0xA0 or first >= 0xE0:
        return 1, 0  # small integers, and the heads of small maps and lists
    if first < 0xC0:
        return 1, first & 0x1F
    if first in _FIXED:
        return 1, _FIXED[first]
    if first in _HEADS:
        return 1, _HEADS[first]
    size = _TEXTS.get(first) or _BINARIES.get(first)
    if size is None:
        return 1, -1
    return 1 + size, int.from_bytes(view[at + 1 : at + 1 + size], "big")
