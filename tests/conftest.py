"""Hypothesis: the same examples every time, unless exploring is asked for (make explore)."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile(
    "explore",
    max_examples=2_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
