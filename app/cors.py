"""What a browser is told of pages of other origins: whether they may read an answer, and may ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_EXPOSED = b"X-Request-Id, Server-Timing, Retry-After"
_ALLOWED_HEADERS = b"Accept, Authorization, Content-Type, X-Deadline-Ms, X-Request-Id, traceparent"
_PREFLIGHT_MAX_AGE_S = b"7200"

PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", _ALLOWED_HEADERS),
    (b"access-control-max-age", _PREFLIGHT_MAX_AGE_S),
]
"""What the answer to a preflight says, beside the headers of every answer."""


class Origins:
    """Those whose pages may call the service; `*` among them for all."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(origin.encode() for origin in allowed)

    def headers(self, asked: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The headers that let a page of another origin read the answer.

        Args:
            asked: the request's headers, as far as they are known.
        """
        if not self._allowed:
            return []
        if b"*" in self._allowed:
            return [
                (b"access-control-allow-origin", b"*"),
                (b"access-control-expose-headers", _EXPOSED),
            ]
        origin = asked.get(b"origin")
        if origin not in self._allowed:
            return [(b"vary", b"Origin")]
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]

    def is_preflight(self, asked: Mapping[bytes, bytes]) -> bool:
        """Whether a request by `OPTIONS` is a browser's, before a page's own."""
        origin = asked.get(b"origin")
        known = origin is not None and (b"*" in self._allowed or origin in self._allowed)
        return known and b"access-control-request-method" in asked


NO_ORIGINS = Origins(())
"""Of a service that pages of other origins may not call."""
