"""Series of the service's metrics, by what they are called in the text that it answers."""

from __future__ import annotations

import re


def value(text: str, series: str) -> float:
    """What a series has come to; one with labels is there from its first count on, others always."""
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert found is not None or "{" in series, series
    return float(found[1]) if found else 0.0
