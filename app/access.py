"""Who may call: API keys, where the service has any."""

from __future__ import annotations

from collections.abc import Iterable
from hmac import compare_digest

from app.errors import Forbidden, Unauthorized


class Access:
    """Checks `Authorization: Bearer KEY` against the configured keys."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = tuple(key.encode() for key in keys)

    def check(self, authorization: bytes | None) -> str:
        """The caller's name among the keys, as `key-1`; empty where the service is open to all.

        Raises:
            Unauthorized: no key was given.
            Forbidden: the key is none of ours.
        """
        if not self._keys:
            return ""
        scheme, _, key = (authorization or b"").strip().partition(b" ")
        if scheme.lower() != b"bearer" or not key.strip():
            raise Unauthorized(given=authorization is not None)
        # Every key is compared, whichever fits, so that the time tells nothing.
        found = [compare_digest(key.strip(), known) for known in self._keys]
        if not any(found):
            raise Forbidden
        return f"key-{found.index(True) + 1}"

    def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The name of the key in a request's headers; empty where there is none, or none of ours."""
        if not self._keys:
            return ""
        given = [value for name, value in headers if name == b"authorization"]
        try:
            return self.check(given[0] if len(given) == 1 else None)
        except (Unauthorized, Forbidden):
            return ""
