"""How long a request's head is, and how many fields it has, counted while it comes."""

from __future__ import annotations

from typing import Final

from app.errors import HeadersTooLarge

MOST_FIELDS: Final = 256
"""Most headers and trailers of one request. One takes four bytes on its way and a hundred once it is read,
and each is looked at more than once in Python while nobody else has a turn. Browsers and proxies send a
few dozen."""


class HeadSize:
    """Bytes of request line, headers and trailers of a request, and of empty lines before it.

    The parser tells of names and values, but not of blanks around them and not of empty lines. So what it
    is given counts until it tells of it. In the pieces in which a head begins behind another request, or
    ends, such bytes cannot be told from others', and do not count.

    Args:
        most: that a request may have.
    """

    __slots__ = ("_fields", "_most", "_told", "_untold")

    def __init__(self, most: int) -> None:
        self._most = most
        self._told = 0  # by the parser, of this request
        self._untold = 0  # that it was given since, or before it has told of them
        self._fields = 0  # of this request, that the parser has told of

    @property
    def untold(self) -> bool:
        """Whether something came of which the parser has not told anything."""
        return self._untold > 0

    @property
    def begun(self) -> bool:
        """Whether anything came at all."""
        return self._told > 0 or self.untold

    def begin(self) -> None:
        """A request begins; what came before it belongs to it."""
        self._told = self._fields = 0

    def give(self, nbytes: int) -> None:
        """The parser is given so many bytes."""
        self._untold += nbytes

    def tell(self, nbytes: int) -> None:
        """The parser tells of so many; raises HeadersTooLarge."""
        self._untold -= nbytes
        self._told += nbytes
        if self._told > self._most:
            raise HeadersTooLarge(self._most)

    def tell_field(self, nbytes: int) -> None:
        """The parser tells of a header or a trailer of so many bytes; raises HeadersTooLarge."""
        self.tell(nbytes)
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise HeadersTooLarge(MOST_FIELDS, number=True)

    def check(self) -> None:
        """The parser has taken what it was given; raises HeadersTooLarge."""
        if self._told + self._untold > self._most:
            raise HeadersTooLarge(self._most)

    def forget_untold(self) -> None:
        """A part of the body has come: what was untold is no head."""
        self._untold = 0

    def end(self) -> None:
        """The request has come to its end."""
        self._told = self._untold = self._fields = 0
