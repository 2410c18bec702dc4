"""Plain values: what config, `wants` and names may be made of, in either format."""

from __future__ import annotations

from collections.abc import Iterable

from app.errors import MalformedBody
from app.wire.limits import DecodeLimits
from engine.errors import Loc
from engine.words import Words, counted

GZIP = b"\x1f\x8b"
"""What a body begins with that is compressed so."""

_KINDS: dict[type, str] = {
    dict: "a map",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    bytes: "binary data",
    memoryview: "binary data",
    type(None): "null",
}


def kind(value: object) -> Words:
    """What a decoded value is, in the words of an error."""
    return Words(_KINDS.get(type(value), "something else"))


def check_text(text: str, loc: Loc, limits: DecodeLimits) -> None:
    """Refuse a text that is too long, or that UTF-8 cannot write.

    Raises:
        MalformedBody: it is one of the two.
    """
    if len(text) > limits.max_text:
        expected = f"at most {limits.max_text} characters"
        got = counted(len(text), "character")
        raise MalformedBody.at(loc, "the text is too long", expected, got)
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        msg = "the text has half of a surrogate pair"
        raise MalformedBody.at(loc, msg, "Unicode text", Words(ascii(text))) from None


def check_plain(value: object, loc: Loc, limits: DecodeLimits) -> None:
    """Refuse a value that nests too deeply, is too large, or is not plain.

    Raises:
        MalformedBody: with the path of the part at fault.
    """
    waiting: list[tuple[Loc, object, int]] = [(loc, value, 0)]
    values = 1
    while waiting:
        loc, value, depth = waiting.pop()
        if isinstance(value, str):
            check_text(value, loc, limits)
        elif isinstance(value, bytes | memoryview):
            msg = "binary data stands only in a tensor"
            raise MalformedBody.at(loc, msg, "a plain value", counted(len(value), "byte"))
        elif isinstance(value, dict | list):
            if isinstance(value, dict) and _is_of_numpy(value):
                # As `msgpack-numpy` writes np.int64(2), which a program easily takes for 2.
                msg = "a value of NumPy stands only where a tensor is"
                raise MalformedBody.at(loc, msg, "a plain value, as .item() and .tolist() are")
            values += len(value)
            _check_size(values, depth + 1, loc, limits)
            waiting.extend((at, item, depth + 1) for at, item in _children(value, loc, limits))


def too_many_values(limits: DecodeLimits, loc: Loc = ()) -> MalformedBody:
    """The error of a body that consists of too many small things."""
    expected = (
        f"at most {limits.max_values} outside tensor data, "
        "which is bin in msgpack, a list or base64 in JSON"
    )
    return MalformedBody.at(loc, "the body has too many values", expected)


def gzipped(expected: str) -> MalformedBody:
    """The error of a body that begins as gzip does (RFC 1952), and does not say so in its headers."""
    msg = "this looks like gzip, and compressed bodies are not supported yet"
    return MalformedBody.at((), msg, expected)


def too_deep(most: int, loc: Loc = (), which: str = "outside tensor data") -> MalformedBody:
    """The error of a body whose maps and lists go deeper than `most` levels of those that count."""
    return MalformedBody.at(loc, "the values nest too deeply", f"at most {most} levels {which}")


def _is_of_numpy(value: dict[str, object]) -> bool:
    return "nd" in value and isinstance(value.get("data"), bytes | memoryview)


def _check_size(values: int, depth: int, loc: Loc, limits: DecodeLimits) -> None:
    if values > limits.max_values:
        raise too_many_values(limits, loc)
    if depth > limits.max_depth:
        raise too_deep(limits.max_depth, loc)


def _children(
    value: dict[str, object] | list[object], loc: Loc, limits: DecodeLimits
) -> Iterable[tuple[Loc, object]]:
    if isinstance(value, list):
        return [((*loc, index), item) for index, item in enumerate(value)]
    for key in value:
        check_text(key, loc, limits)
    return [((*loc, key), item) for key, item in value.items()]
