"""Hypothesis: the same cases in every automated run, so that main is not guarded by chance; new ones on a desk."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
