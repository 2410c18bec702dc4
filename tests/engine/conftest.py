"""How many examples Hypothesis tries here: the same ones every time, unless asked to explore.

pytest tests/engine --hypothesis-profile=explore
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile(
    "engine", derandomize=True, deadline=None, database=None, max_examples=150
)
settings.register_profile("explore", deadline=None, database=None, max_examples=3000)

if settings.get_current_profile_name() in ("default", "ci"):
    settings.load_profile("engine")
