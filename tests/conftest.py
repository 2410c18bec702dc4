"""What Hypothesis tries: the same examples every time, however slow the machine, unless asked to explore.

pytest tests/engine --hypothesis-profile=explore
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long examples take is the machine's business.
settings.register_profile("explore", deadline=None, database=None, max_examples=3000)
settings.register_profile(
    "same",
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)

if settings.get_current_profile_name() in ("default", "ci"):
    settings.load_profile("same")
