"""Which form a request's body has, and which form its answer gets.

Media types and quality values as in RFC 9110, sections 8.3, 12.4 and 12.5.1. One extension: the
parameter `tensors` of a range in `Accept` chooses how an answer writes its tensors, and a range
with an encoding that does not exist for its media type matches nothing. One leniency: Java's
HttpURLConnection writes `*; q=.2` unless it is told otherwise, up to Java 8, which is read as it is
meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

from app.errors import NotAcceptable, UnsupportedCoding, UnsupportedMediaType

Codec = Literal["msgpack", "json"]
TensorForm = Literal["plain", "msgpack-numpy", "list", "base64"]

MEDIA_TYPES: Final[Mapping[str, Codec]] = {
    "application/vnd.msgpack": "msgpack",
    "application/json": "json",
    "application/msgpack": "msgpack",
    "application/x-msgpack": "msgpack",
}
"""Every media type that is read and written, the preferred name of each codec first."""

TENSORS: Final[Mapping[Codec, tuple[TensorForm, ...]]] = {
    "msgpack": ("plain", "msgpack-numpy"),
    "json": ("list", "base64"),
}
"""How an answer can write its tensors, the way taken unless another is asked for first."""

MAX_RANGES: Final = 64
"""Ranges of an `Accept` header that are looked at; any after them count for nothing."""

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA = re.compile(rf"({_TOKEN})/({_TOKEN})\s*((?:;.*)?)", re.DOTALL)
_PARAMETER = re.compile(
    rf";\s*(?:({_TOKEN})=({_TOKEN}|\"(?:[^\"\\]|\\.)*+\"))?\s*",
    re.DOTALL,
)
# A quote that never closes runs to the end, so that no text is looked at twice.
_ELEMENT = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.?)*+(?:"|\Z))++', re.DOTALL)
_ANYTHING = re.compile(r"\A\s*\*\s*(?=;|\Z)")
_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|\.[0-9]{1,3}|1(?:\.0{0,3})?")


@dataclass(frozen=True)
class Exchange:
    """The forms of one request and its answer.

    Attributes:
        request: how the body is to be read.
        response: how the answer is to be written.
        media_type: the answer's `Content-Type`.
        tensors: how the answer writes its tensors.
    """

    request: Codec
    response: Codec
    media_type: str
    tensors: TensorForm


@dataclass(frozen=True)
class _Media:
    kind: str
    subtype: str
    parameters: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.subtype}"


@dataclass(frozen=True)
class _Range:
    media: _Media
    weight: float

    def fits(self, name: str, tensors: TensorForm) -> int:
        """How closely the range names this form of answer: 0 not at all, more is closer."""
        if self.media.name == name:
            closeness = 3
        elif self.media.name == name.split("/")[0] + "/*":
            closeness = 2
        elif self.media.name == "*/*":
            closeness = 1
        else:
            return 0
        wanted = self.media.parameters.get("tensors")
        if wanted is None:
            return closeness
        return closeness + 3 if wanted == tensors else 0


@lru_cache(maxsize=128)
def negotiate(
    content_type: str | None, accept: str | None, content_encoding: str | None = None
) -> Exchange:
    """Settle the forms of a request and its answer from the three headers.

    Among forms that `Accept` wishes equally, the one that it names most closely is taken, then the
    request's own.

    Raises:
        UnsupportedMediaType: the body's media type, or its content coding, is not read here.
        NotAcceptable: `Accept` rules out every form.
    """
    _check_coding(content_encoding)
    own = _body_type(content_type)
    if accept is None or not accept.strip():
        return _exchange(own, own, TENSORS[MEDIA_TYPES[own]][0])
    ranges = list(_ranges(accept))
    best = max(_forms(own), key=lambda form: _wish(ranges, *form))
    if _wish(ranges, *best)[0] == 0:
        msg = "no answer can be given in such a form"
        raise NotAcceptable.at(("header", "Accept"), msg, _every_form(), accept)
    return _exchange(own, *best)


def _exchange(own: str, media_type: str, tensors: TensorForm) -> Exchange:
    return Exchange(MEDIA_TYPES[own], MEDIA_TYPES[media_type], media_type, tensors)


def _check_coding(content_encoding: str | None) -> None:
    codings = (content_encoding or "").lower().split(",")
    if any(coding.strip() not in ("", "identity") for coding in codings):
        loc, msg = ("header", "Content-Encoding"), "this content coding is not read here"
        raise UnsupportedCoding.at(loc, msg, "identity, or no such header", content_encoding)


def _body_type(content_type: str | None) -> str:
    """The name of the body's media type, which is one of `MEDIA_TYPES`."""
    media = None if content_type is None else _media(content_type)
    if media is None or media.name not in MEDIA_TYPES:
        msg = "the body's media type is not one that is read here"
        raise UnsupportedMediaType.at(
            ("header", "Content-Type"), msg, " or ".join(MEDIA_TYPES), content_type
        )
    charset = media.parameters.get("charset", "utf-8").lower()
    # msgpack has no text of its own; a parameter that a type does not know means nothing.
    if MEDIA_TYPES[media.name] == "json" and charset not in ("utf-8", "utf8", "us-ascii"):
        msg = "text is read in UTF-8 only"
        raise UnsupportedMediaType.at(
            ("header", "Content-Type"), msg, "charset=utf-8", content_type
        )
    return media.name


def _forms(own: str) -> Iterator[tuple[str, TensorForm]]:
    """Every form of answer, the one that we would choose ourselves first."""
    names = [own, *(name for name in MEDIA_TYPES if name != own)]
    for position in range(2):
        for name in names:
            yield name, TENSORS[MEDIA_TYPES[name]][position]


def _wish(ranges: list[_Range], name: str, tensors: TensorForm) -> tuple[float, int]:
    """How much a form is wished for: its weight, which the closest range decides, and closeness."""
    fits = [(each.fits(name, tensors), each.weight) for each in ranges]
    closeness, weight = max((fit for fit in fits if fit[0]), default=(0, 0.0))
    return weight, closeness


def _ranges(accept: str) -> Iterator[_Range]:
    """The ranges of an `Accept` header; one that breaks the grammar counts for nothing."""
    for element in islice(_ELEMENT.finditer(accept), MAX_RANGES):
        media = _media(_ANYTHING.sub("*/*", element[0]))
        if media is None:
            continue
        weight = media.parameters.get("q", "1")
        if _WEIGHT.fullmatch(weight):
            yield _Range(media, float(weight))


def _media(text: str) -> _Media | None:
    """Read `type/subtype; name=value; …`, names and types in lower case; None if it is not that."""
    match = _MEDIA.fullmatch(text.strip())
    if match is None:
        return None
    parameters: dict[str, str] = {}
    rest, at = match[3], 0
    while at < len(rest):
        parameter = _PARAMETER.match(rest, at)
        if parameter is None:
            return None
        if parameter[1] is not None:
            parameters.setdefault(parameter[1].lower(), _unquoted(parameter[2]))
        at = parameter.end()
    return _Media(match[1].lower(), match[2].lower(), parameters)


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value[0] == '"' else value


def _every_form() -> str:
    return " or ".join(
        name if position == 0 else f"{name}; tensors={encoding}"
        for name, codec in MEDIA_TYPES.items()
        for position, encoding in enumerate(TENSORS[codec])
    )
