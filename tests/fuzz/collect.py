"""Writes the corpus: `python -m tests.fuzz.collect`. Bodies that were found are left as they are."""

from __future__ import annotations

import re

from benchmarks.stress.traffic import recorded
from tests.faults.hostile import JSON, MSGPACK, REQUESTS
from tests.fuzz.decoding import CORPUS

LARGEST = 8 << 10
"""Larger bodies say nothing that smaller ones do not."""

FORMS = {MSGPACK: "msgpack", JSON: "json"}


def main() -> None:
    """Write one file for each body that is small enough."""
    bodies = [(FORMS[each.media], each.name, each.body) for each in REQUESTS if each.media in FORMS]
    bodies += [
        (FORMS[each.headers["Content-Type"]], f"recorded {each.name}", each.body)
        for forms in (("msgpack", "msgpack-numpy"), ("json", "base64"))
        for each in recorded(forms)
    ]
    seen: set[bytes] = set()
    for form, name, body in bodies:
        if body in seen or len(body) > LARGEST:
            continue
        seen.add(body)
        path = CORPUS / form / re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


if __name__ == "__main__":
    main()
